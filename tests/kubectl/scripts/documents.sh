# What the documents of the product's origin type, in their order.

# The toleration as it is printed there is refused by every Kubernetes.
! kubectl create -f nginx-ds-printed.yaml
kubectl create -f nginx-ds.yaml
kubectl rollout status ds nginx-ds | tail -n 1
kubectl get daemonset
kubectl get pod -o wide | sort
kubectl set image ds nginx-ds nginx-ds=repository.test.com:8444/kubernetes/nginx/nginx:1.24.0 --record=true
kubectl rollout status ds nginx-ds | tail -n 1
kubectl rollout history daemonset nginx-ds
kubectl rollout history daemonset nginx-ds --revision=2
kubectl get controllerrevision -l app=nginx-ds | sort
kubectl rollout undo daemonset nginx-ds --to-revision=1
kubectl rollout status ds nginx-ds | tail -n 1
kubectl rollout undo daemonset nginx-ds
kubectl rollout status ds nginx-ds | tail -n 1
kubectl rollout history daemonset nginx-ds
kubectl get controllerrevision -l app=nginx-ds | sort
! kubectl rollout undo daemonset nginx-ds --to-revision=1
kubectl delete daemonset nginx-ds --cascade=orphan
kubectl get pod --no-headers | sort
kubectl create -f nginx-ds.yaml
kubectl rollout status ds nginx-ds | tail -n 1
kubectl delete daemonset nginx-ds
kubectl wait pod --all --for=delete --timeout=60s >/dev/null

kubectl apply -f fluentd.yaml
kubectl rollout status ds fluentd-elasticsearch --namespace kube-system | tail -n 1
kubectl get daemonsets.apps fluentd-elasticsearch --namespace kube-system
! kubectl get pods --namespace kube-system --label name=fluentd-elasticsearch
kubectl get pods --namespace kube-system -l name=fluentd-elasticsearch | sort
kubectl delete daemonsets.apps fluentd-elasticsearch --namespace kube-system
kubectl wait pod -l name=fluentd-elasticsearch --namespace kube-system --for=delete --timeout=60s >/dev/null
