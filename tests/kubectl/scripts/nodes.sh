# What is done to nodes.
kubectl apply -f web.yaml
kubectl apply -f loose.yaml
kubectl rollout status ds/web | tail -n 1
kubectl wait pod/loose --for=condition=Ready --timeout=60s

kubectl label node node-0001 kind=canary
kubectl get node -l kind=canary
kubectl label node node-0001 kind-
kubectl annotate node node-0001 note=hello
kubectl annotate node node-0001 note-
kubectl taint node node-0001 only=some:NoSchedule
! kubectl taint node node-0001 only=some:NoSchedule
kubectl taint node node-0001 only=others:NoSchedule --overwrite
kubectl get node node-0001 -o jsonpath='{.spec.taints}{"\n"}'
kubectl get pod --field-selector spec.nodeName=node-0001 --no-headers
kubectl taint node node-0001 only-
! kubectl taint node node-0001 only-
! kubectl taint node node-0001 only=some:Nonsense
kubectl taint node node-0001 only=some:NoExecute
kubectl wait pod --field-selector spec.nodeName=node-0001 --for=delete --timeout=60s >/dev/null
kubectl wait ds/web --for=jsonpath='{.status.numberReady}'=4 --timeout=60s
kubectl get ds web
kubectl taint node node-0001 only=some:NoExecute-
kubectl rollout status ds/web | tail -n 1
kubectl wait ds/web --for=jsonpath='{.status.numberReady}'=5 --timeout=60s

kubectl cordon node-0002
kubectl cordon node-0002
kubectl get node node-0002
kubectl describe node node-0002 | sed -n '/^Taints/,/^Unschedulable/p'
kubectl uncordon node-0002
kubectl get node node-0002

# What drain complains of comes in any order, also within one line.
! kubectl drain node-0002 --timeout=20s 2>&1 | grep -v -E '^(Warning|error: unable)' | sort
kubectl get node node-0002
! kubectl drain node-0002 --ignore-daemonsets --timeout=20s 2>&1 | grep -v ^Warning | sort
kubectl apply -f budget.yaml
kubectl wait pdb/loose --for=jsonpath='{.status.observedGeneration}'=1 --timeout=60s
! kubectl drain node-0002 --ignore-daemonsets --force --timeout=3s 2>&1 | grep -v ^Warning | sort
kubectl delete pdb loose
kubectl drain node-0002 --ignore-daemonsets --force --timeout=60s 2>&1 | grep -v ^Warning | sort
kubectl get pod loose --ignore-not-found
kubectl get ds web
kubectl drain node-0002 --ignore-daemonsets --disable-eviction --force --timeout=60s 2>&1 | grep -v ^Warning | sort
kubectl uncordon node-0002
kubectl get nodes

kubectl delete ds web --cascade=foreground
