# Every way to write.
! kubectl apply -f misspelt.yaml
! grep -v imagee misspelt.yaml | kubectl apply --server-side -f -
! kubectl apply -f invalid.yaml
! kubectl create -f invalid.yaml
! kubectl create -f missing.yaml

# Applied on the client's side.
kubectl apply -f web.yaml --dry-run=client
kubectl apply -f web.yaml --dry-run=server
kubectl apply -f web.yaml
kubectl apply -f web.yaml
! kubectl diff -f web-changed.yaml | grep -E '^[+-] '
kubectl diff -f web.yaml
kubectl apply -f web-changed.yaml
kubectl apply view-last-applied ds/web
kubectl get ds web -o jsonpath='{.metadata.generation}{"\n"}'
! kubectl create -f web.yaml
kubectl rollout status ds/web | tail -n 1

# And on the server's.
! kubectl apply --server-side --field-manager=robot -f web.yaml
kubectl apply --server-side --field-manager=robot --force-conflicts -f web.yaml
kubectl apply --server-side -f web.yaml
kubectl apply --server-side -f web.yaml --dry-run=server
kubectl rollout status ds/web | tail -n 1
kubectl wait ds/web --for=condition=Complete --timeout=60s
kubectl get ds web --show-managed-fields -o yaml
! kubectl diff --server-side --force-conflicts -f web-changed.yaml | grep -E '^[+-] '

# Replaced, edited, patched.
kubectl replace -f web-changed.yaml
kubectl get ds web -o yaml | sed '/^status:/,$d'
KUBE_EDITOR='sed -i s/web:2/web:3/' kubectl edit ds web
KUBE_EDITOR=true kubectl edit ds web
! KUBE_EDITOR='sed -i s/app:.web$/app:\ other/' kubectl edit ds web --output-patch
kubectl patch ds web -p '{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"web:4"}]}}}}'
kubectl patch ds web -p '{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"side:1"}]}}}}'
kubectl get ds web -o jsonpath='{.spec.template.spec.containers[*].name}{"\n"}'
kubectl patch ds web -p '{"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"web"}],"containers":[{"$patch":"delete","name":"side"}]}}}}'
kubectl patch ds web --type=merge -p '{"spec":{"minReadySeconds":1,"template":{"spec":{"nodeSelector":null}}}}'
kubectl patch ds web --type=json -p '[{"op":"replace","path":"/spec/minReadySeconds","value":0},{"op":"add","path":"/metadata/labels/more","value":"yes"}]'
kubectl patch ds web --type=merge --subresource=status --patch-file=unready-patch.json
kubectl patch ds web --dry-run=server -p '{"spec":{"minReadySeconds":7}}' -o jsonpath='{.spec.minReadySeconds}{"\n"}'
! kubectl patch ds web --type=json -p '[{"op":"test","path":"/spec/minReadySeconds","value":9}]'
! kubectl patch ds web --type=json -p '[{"op":"remove","path":"/spec/nothing"}]'
! kubectl patch ds web --type=merge -p '{"spec":{"selector":{"matchLabels":{"app":"other"}}}}'
! kubectl patch ds web --type=merge -p '{"metadata":{"resourceVersion":"1"},"spec":{"minReadySeconds":3}}'
! kubectl patch ds missing -p '{}'
kubectl rollout status ds/web | tail -n 1
kubectl wait ds/web --for=condition=Complete --timeout=60s
kubectl patch ds web -p '{}'
kubectl get ds web -o yaml

# Labels and annotations.
kubectl label ds web colour=red
! kubectl label ds web colour=blue
kubectl label ds web colour=blue --overwrite
kubectl label ds web colour-
kubectl annotate ds web note='something to say'
kubectl annotate ds web note-
! kubectl label ds web 'bad key=1'

# Set.
kubectl set image ds/web web=web:5
kubectl set image ds/web '*=web:6' --dry-run=server -o name
! kubectl set image ds/web other=web:5
kubectl set env ds/web LEVEL=warn MORE=1
kubectl set env ds/web --list
kubectl set resources ds/web --limits=cpu=300m,memory=256Mi
kubectl set selector ds web app=web --local --dry-run=client -o name; true
kubectl rollout status ds/web | tail -n 1
kubectl rollout history ds/web | wc -l
kubectl rollout restart ds/web
kubectl rollout status ds/web --timeout=60s | tail -n 1
kubectl get ds web
! kubectl rollout pause ds/web
! kubectl rollout resume ds/web
! kubectl scale ds/web --replicas=2
! kubectl rollout undo ds/web --to-revision=99

# Waiting.
kubectl wait ds/web --for=jsonpath='{.status.numberReady}'=5 --timeout=60s
kubectl wait pod -l app=web --for=condition=Ready --timeout=60s | sort
! kubectl wait ds/web --for=condition=Nonsense --timeout=1s

# Made from words.
kubectl create configmap words --from-literal=a=1 --from-literal=b=2
kubectl create secret generic words --from-literal=a=1
kubectl create serviceaccount reader
kubectl create role reading --verb=get,list --resource=pods
kubectl create rolebinding reading --role=reading --serviceaccount="$NAMESPACE":reader
kubectl create priorityclass words-"$NAMESPACE" --value=1000
kubectl create pdb words --selector=app=words --min-available=1
kubectl create deployment idle --image=idle:1 --replicas=0
kubectl scale deployment idle --replicas=0
kubectl scale deployment idle --replicas=0 --current-replicas=0 --dry-run=server
! kubectl scale deployment idle --replicas=2 --current-replicas=1
! kubectl scale deployment missing --replicas=1
! kubectl scale ds web --replicas=1
kubectl get deployment idle --subresource=scale
kubectl get cm,secret,sa,role,rolebinding,pdb -o name | grep -E 'words|reader|reading'
kubectl get cm words -o yaml
! kubectl create configmap words --from-literal=a=1
kubectl delete cm/words secret/words sa/reader role/reading rolebinding/reading pdb/words deployment/idle
kubectl delete priorityclass words-"$NAMESPACE"
kubectl run single --image=single:1 --overrides='{"spec":{"nodeName":"node-0004"}}'
kubectl wait pod/single --for=condition=Ready --timeout=60s
kubectl get pod single -o yaml | grep -v serviceAccount
! kubectl patch pod single --type=merge -p '{"spec":{"hostname":"other"}}' 2>&1 | head -n 1
kubectl set image pod/single single=single:2
kubectl delete pod single --grace-period=1

# Deleted, in each way.
! kubectl delete ds missing
kubectl delete ds missing --ignore-not-found
kubectl delete ds web --dry-run=server
kubectl delete ds web --cascade=orphan
kubectl get pod -o jsonpath='{range .items[*]}{.metadata.ownerReferences}{"\n"}{end}' | sort
kubectl apply -f web-changed.yaml
kubectl rollout status ds/web | tail -n 1
kubectl delete ds web --cascade=foreground
kubectl get pod
kubectl apply -f web.yaml
kubectl rollout status ds/web | tail -n 1
kubectl delete ds web --cascade=background
kubectl wait pod --all --for=delete --timeout=60s >/dev/null
kubectl get controllerrevisions
kubectl apply -f web.yaml
kubectl rollout status ds/web | tail -n 1
kubectl delete pod -l app=web --force --grace-period=0 2>&1 | sort
kubectl rollout status ds/web | tail -n 1
kubectl delete ds -l app=web --now
kubectl wait pod --all --for=delete --timeout=60s >/dev/null
