# Every form in which things are printed.
# Descriptions of fields are our own, and nothing plays service accounts or the TTL controller: of these only what is
# left is looked at.
kubectl apply -f web.yaml
kubectl apply -f settings.yaml
kubectl rollout status ds/web | tail -n 1

kubectl get ds
kubectl get ds -o wide
kubectl get ds web -o yaml
kubectl get ds web -o json
kubectl get ds -o name
kubectl get ds web -o jsonpath='{.status.numberReady}{"\n"}'
kubectl get ds -o jsonpath-as-json='{.items[*].spec.template.spec.containers[*].image}'
kubectl get ds -o go-template='{{range .items}}{{.metadata.name}}{{"\n"}}{{end}}'
kubectl get ds -o custom-columns=NAME:.metadata.name,IMAGE:.spec.template.spec.containers[0].image
kubectl get ds --show-labels
kubectl get ds -L tier,app
kubectl get ds --show-kind
kubectl get ds --no-headers
kubectl get ds,cm,secret,sa,role,svc -l '!none' --ignore-not-found | grep -v kube-root-ca
kubectl get ds -l app=web -o name
kubectl get ds -l 'app in (web, other), tier != core' -o name
kubectl get ds -l app=other
kubectl get ds --field-selector metadata.name=web -o name
kubectl get ds --sort-by=.metadata.creationTimestamp
kubectl get all | grep -v service/kubernetes | sort
kubectl get ds web missing --ignore-not-found -o name
! kubectl get ds missing
! kubectl get nonsense
! kubectl get ds --field-selector spec.paused=true
! kubectl get ds -l 'app in web'
kubectl get ds web --show-managed-fields -o jsonpath='{.metadata.managedFields[*].manager}' | tr ' ' '\n' | sort
kubectl get ds web --chunk-size=1
kubectl get pod | sort
kubectl get pod -o wide | sort
kubectl get pod --chunk-size=2 -o name | sort
kubectl get pod --field-selector spec.nodeName=node-0003
kubectl get pod --field-selector spec.nodeName=node-0003 -o yaml | grep -v serviceAccount
kubectl get pod --field-selector 'status.phase!=Running'
kubectl get pod --sort-by=.spec.nodeName
kubectl get pod -l app=web -o jsonpath='{range .items[*]}{.spec.nodeName}{"\n"}{end}' | sort
kubectl get pod -o custom-columns=NODE:.spec.nodeName,PHASE:.status.phase | sort
kubectl get controllerrevisions
kubectl get controllerrevisions -o wide
kubectl get controllerrevisions -o yaml
kubectl get nodes
kubectl get nodes -o wide
kubectl get nodes --show-labels
kubectl get nodes -L topology.kubernetes.io/zone
kubectl get node node-0001 -o jsonpath='{.metadata.labels}{"\n"}{.spec}{"\n"}{.status}{"\n"}'
kubectl get ns default kube-system
kubectl get ns "$NAMESPACE" -o yaml
kubectl get ds -A --no-headers | grep "$NAMESPACE"
kubectl get sa robot -o yaml
kubectl get cm settings -o yaml
kubectl get secret password -o yaml
kubectl get svc web -o jsonpath='{.spec.ports}{"\n"}'
kubectl get events --field-selector reason=SuccessfulCreate -o custom-columns=KIND:.involvedObject.kind,NAME:.involvedObject.name,MESSAGE:.message | sort
kubectl get --raw /readyz
kubectl get --raw /apis/apps/v1 | tr , '\n' | grep '"name":"daemonsets'
kubectl get pdb
! kubectl get ds -o nonsense

kubectl describe ds web
kubectl describe pod -l app=web --show-events=false | grep -v -E '^(Node|Service Account):' | sed 's/^ *//' | sort
kubectl describe node node-0001 | sed -n '/^Name:/,/^Unschedulable/p;/^Capacity:/,/^Non-terminated/p' | grep -v '^Annotations'
kubectl describe cm settings
kubectl describe secret password
kubectl describe ns "$NAMESPACE" | grep -v -E '^(No .*|)$' 
! kubectl describe ds missing

kubectl explain ds | grep -E $'^[A-Z]+:|\t<'
kubectl explain daemonset.spec | grep -E $'^[A-Z]+:|\t<'
kubectl explain daemonset.spec.updateStrategy.rollingUpdate | grep -E $'^[A-Z]+:|\t<'
kubectl explain ds.spec.template.spec.containers.resources | grep -E $'^[A-Z]+:|\t<'
kubectl explain ds.spec --recursive | grep -E $'^[A-Z]+:|\t<'
kubectl explain pod.status.conditions | grep -E $'^[A-Z]+:|\t<'
kubectl explain node.spec.taints | grep -E $'^[A-Z]+:|\t<'
! kubectl explain ds.spec.nonsense
! kubectl explain nonsense

kubectl api-resources | grep -E '^(NAME|nodes|pods|namespaces|events|configmaps|secrets|serviceaccounts|services|daemonsets|controllerrevisions|deployments|leases|priorityclasses|poddisruptionbudgets|roles|rolebindings|clusterroles|clusterrolebindings|customresourcedefinitions|selfsubject) '
kubectl api-resources --namespaced=false -o name | grep -E '^(nodes|namespaces|priorityclasses.scheduling.k8s.io)$'
kubectl api-resources --api-group=apps.kruise.io
kubectl api-resources --api-group=policy -o wide
kubectl api-versions | grep -E '^(v1|apps/v1|apps.kruise.io/.*|policy/v1|events.k8s.io/v1|coordination.k8s.io/v1)$'
kubectl auth can-i create daemonsets
kubectl auth can-i delete nodes --quiet
kubectl auth can-i '*' '*' --all-namespaces
kubectl auth can-i get pods --subresource=log
kubectl auth can-i --list | grep '^\*\.\*'
kubectl auth whoami | grep -o system:masters
kubectl cluster-info
kubectl version 2>/dev/null | grep Server | sed s/+everynode//
kubectl events --for ds/web | sed 's/^.*Normal/Normal/' | sort
kubectl events --types=Warning

kubectl delete -f web.yaml -f settings.yaml
kubectl wait pod --all --for=delete --timeout=60s >/dev/null
