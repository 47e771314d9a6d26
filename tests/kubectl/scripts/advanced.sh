# The Advanced DaemonSet, served from its definition.
kubectl get crd daemonsets.apps.kruise.io
kubectl api-resources --api-group=apps.kruise.io
! kubectl apply -f agent-invalid.yaml
! kubectl apply -f agent-invalid.yaml --server-side
kubectl apply -f agent.yaml
kubectl apply -f agent.yaml
kubectl wait daemonsets.apps.kruise.io/agent --for=jsonpath='{.status.numberReady}'=5 --timeout=60s
kubectl wait daemonsets.apps.kruise.io/agent --for=condition=Complete --timeout=60s
kubectl get daemonsets.apps.kruise.io
kubectl get daemonsets.apps.kruise.io -o wide
kubectl get daemonsets.apps.kruise.io agent -o yaml
kubectl get daemonsets.v1alpha1.apps.kruise.io agent -o yaml
kubectl get pod -o wide | sort
kubectl describe daemonsets.apps.kruise.io agent | sed '/^Events/,$d' | grep -v 'Resource Version'
kubectl explain daemonset.spec.updateStrategy --api-version=apps.kruise.io/v1beta1
kubectl explain daemonset.spec.updateStrategy.rollingUpdate --api-version=apps.kruise.io/v1alpha1
kubectl get controllerrevisions -l app=agent
kubectl patch daemonsets.apps.kruise.io agent --type=merge -p '{"spec":{"updateStrategy":{"rollingUpdate":{"partition":3}}}}'
kubectl patch daemonsets.apps.kruise.io agent --type=json -p '[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"agent:2"}]'
kubectl wait daemonsets.apps.kruise.io/agent --for=jsonpath='{.status.updatedNumberScheduled}'=2 --timeout=60s
kubectl patch daemonsets.apps.kruise.io agent --type=merge -p '{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}'
kubectl wait daemonsets.apps.kruise.io/agent --for=condition=Complete --timeout=60s
kubectl get pod -o custom-columns=NODE:.spec.nodeName,IMAGE:.spec.containers[0].image,RESTARTS:.status.containerStatuses[0].restartCount | sort
kubectl get daemonsets.apps.kruise.io agent -o jsonpath='{.status.numberReady} {.status.updatedNumberScheduled}{"\n"}'
! kubectl patch daemonsets.apps.kruise.io agent -p '{"spec":{"minReadySeconds":1}}' --type=strategic
! kubectl patch daemonsets.apps.kruise.io agent --type=merge -p '{"spec":{"selector":{"matchLabels":{"app":"other"}}}}'
! kubectl diff -f agent.yaml | grep -E '^[+-] '
kubectl apply --server-side --force-conflicts -f agent.yaml
KUBE_EDITOR='sed -i s/agent:1/agent:3/' kubectl edit daemonsets.apps.kruise.io agent
kubectl label daemonsets.apps.kruise.io agent colour=red
kubectl delete daemonsets.apps.kruise.io agent
kubectl wait pod --all --for=delete --timeout=60s >/dev/null
