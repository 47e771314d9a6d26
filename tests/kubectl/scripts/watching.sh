# What is printed as it happens: each line is read before the next is caused.
kubectl create configmap words --from-literal=a=1
kubectl label cm words app=words

exec 3< <(exec kubectl get cm -l app=words -w -o name); watch=$!; \
  read -r -u 3 first; kubectl label cm words seen=1; read -r -u 3 second; \
  kill $watch; echo "$first"; echo "$second"

exec 3< <(exec kubectl get cm words -w); watch=$!; \
  read -r -u 3 header; read -r -u 3 first; kubectl label cm words seen=2 --overwrite; read -r -u 3 second; \
  kill $watch; echo "$header"; echo "$first"; echo "$second"

# Of those only what happens after it has begun to watch.
exec 3< <(exec kubectl get cm words --watch-only -o name); watch=$!; \
  until read -r -t 1 -u 3 line; do kubectl label cm words seen="$RANDOM" --overwrite >/dev/null; done; \
  kill $watch; echo "$line"

exec 3< <(exec kubectl get cm -l app=words -w --output-watch-events --no-headers); watch=$!; \
  read -r -u 3 event rest; echo "$event"; \
  kubectl label cm words app=others --overwrite; read -r -u 3 event rest; echo "$event"; \
  kubectl label cm words app=words --overwrite; read -r -u 3 event rest; echo "$event"; \
  kubectl delete cm words; read -r -u 3 event rest; echo "$event"; \
  kill $watch

# As one of the documents types it.
exec 3< <(exec kubectl get pods --watch --namespace kube-system --no-headers 2>/dev/null); watch=$!; \
  kubectl run watched-"$NAMESPACE" --image=watched:1 --namespace kube-system; \
  while read -r -u 3 name ready status rest; do [ "$name $status" = "watched-$NAMESPACE Running" ] && break; done; \
  kill $watch; echo "$name $ready $status"
kubectl delete pod watched-"$NAMESPACE" --namespace kube-system

kubectl run single --image=single:1
exec 3< <(exec kubectl events -w --for pod/single --no-headers); watch=$!; \
  while read -r -u 3 age type reason rest; do [ "$reason" = Started ] && break; done; \
  kill $watch; echo "$type $reason"
kubectl delete pod --all
kubectl create pdb words --selector=app=words --min-available=1
kubectl delete pdb --all
