"""Manifest corpus: valid and invalid manifests, for every test of validation.

`refused_at` lists the fields that errors are reported at. Errors in the template of an Advanced
DaemonSet are found by our own validation only: its CustomResourceDefinition accepts them, and the
API server refuses the pod. Such cases set `only_by_us`.
"""

# ruff: noqa: E501 - one case is one line, so that the table can be read as one

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from everynode.api import keys

Object = dict[str, Any]
Table = tuple[tuple[str, Object, tuple[str, ...]], ...]

SELECTOR: Object = {"matchLabels": {"app": "agent"}}
ROLLING = "spec.updateStrategy.rollingUpdate"
POD_SPEC = "spec.template.spec"
CONTAINER = f"{POD_SPEC}.containers[0]"


class Case(NamedTuple):
    """A manifest, named after what is special about it."""

    name: str
    manifest: Object
    refused_at: tuple[str, ...] = ()
    only_by_us: bool = False
    undecodable: bool = False  # a type that the native API refuses before it validates

    def __repr__(self) -> str:
        return self.name


def daemonset(version: str, *, metadata: Object | None = None, **spec: Any) -> Object:
    """A valid DaemonSet with the given fields changed; None removes a field."""
    whole: Object = {"selector": SELECTOR, "template": template()} | spec
    return {
        "apiVersion": version,
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "default"} | (metadata or {}),
        "spec": {name: value for name, value in whole.items() if value is not None},
    }


def template(container: Object | None = None, **spec: Any) -> Object:
    """A valid pod template with the given fields changed."""
    return {
        "metadata": {"labels": {"app": "agent"}},
        "spec": {"containers": [{"name": "agent", "image": "agent:1"} | (container or {})]} | spec,
    }


def pod(container: Object | None = None, **spec: Any) -> Object:
    """A valid pod with the given fields changed."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "agent", "namespace": "default"},
        "spec": template(container, **spec)["spec"],
    }


def rolling(**fields: Any) -> Object:
    return {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": fields}}


def requirement(operator: str, *values: str, key: str = "zone") -> Object:
    return {"key": key, "operator": operator} | ({"values": list(values)} if values else {})


def node_affinity(*terms: Object) -> Object:
    required = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def pod_affinity(term: Object, *, weight: int | None = None) -> Object:
    if weight is None:
        return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    weighted = {"weight": weight, "podAffinityTerm": term}
    return {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}}


# fmt: off
_TWINS: list[Object] = [{"name": "a", "image": "a"}, {"name": "a", "image": "b"}]

# --- The Advanced DaemonSet's own fields -------------------------------------------------------

_GOOD_SPECS: tuple[tuple[str, Object], ...] = (
    ("nothing but the necessary", {}),
    ("on delete", {"updateStrategy": {"type": "OnDelete"}}),
    ("an update strategy without a type", {"updateStrategy": {"rollingUpdate": {}}}),
    ("an empty update strategy", {"updateStrategy": {}}),
    ("nulls", rolling(paused=None, maxSurge=None, selector=None) | {"lifecycle": {"inPlaceUpdate": None}}),
    ("a null type", {"updateStrategy": {"type": None}}),
    ("standard", rolling(rollingUpdateType="Standard")),
    ("in place", rolling(rollingUpdateType="InPlaceIfPossible", maxUnavailable="10%")),
    ("in place without a surge", rolling(rollingUpdateType="InPlaceIfPossible", maxSurge=0, maxUnavailable=1)),
    ("surging", rolling(rollingUpdateType="Surging")),
    ("surging by the other spelling", rolling(type="Surging", maxSurge="30%")),
    ("both spellings", rolling(type="Standard", rollingUpdateType="Standard")),
    ("a surge alone", rolling(maxSurge=1)),
    ("a surge in percent beside no unavailable", rolling(maxSurge="5%", maxUnavailable="0%")),
    ("all unavailable", rolling(maxUnavailable="100%")),
    ("leading zeros", rolling(maxUnavailable="007%")),
    ("a partition", rolling(partition=100)),
    ("a partition in percent", rolling(partition="99%")),
    ("a partition of everything", rolling(partition="100%")),
    ("an expression for any pod", {"selector": {"matchLabels": {"app": "agent"}, "matchExpressions": [requirement("NotIn", "a", key="b")]}}),
    ("selected nodes", rolling(selector={"matchLabels": {"example.com/type": "canary"}})),
    ("nodes by expression", rolling(selector={"matchExpressions": [requirement("In", "a", "b"), requirement("Exists", key="x")]})),
    ("any node", rolling(selector={})),
    ("paused", rolling(paused=True)),
    ("a contradiction on delete", {"updateStrategy": {"type": "OnDelete", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}}),
    ("a burst in percent", {"burstReplicas": "10%"}),
    ("a burst of more than all", {"burstReplicas": "150%"}),
    ("no history", {"revisionHistoryLimit": 0, "minReadySeconds": 0}),
    ("a hook by label", {"lifecycle": {"preDelete": {"labelsHandler": {"example.io/block": "true"}}}}),
    ("a hook by finalizer", {"lifecycle": {"preDelete": {"finalizersHandler": ["example.io/x"], "markPodNotReady": True}}}),
    ("an ignored hook", {"lifecycle": {"preNormal": {}}}),
    ("progressive creation", {"scaleStrategy": {"partitionedScaling": True}}),
    ("a selector by expression", {"selector": {"matchExpressions": [requirement("In", "agent", key="app"), requirement("DoesNotExist"), requirement("NotIn", "x")]}}),
    ("nulls in the template", {"template": template({"env": None, "resources": None}, nodeSelector=None, tolerations=None) | {"metadata": {"labels": {"app": "agent"}, "creationTimestamp": None}}}),
    ("a field of a newer Kubernetes", {"template": template({"newer": {"a": 1}}, newer=[1])}),
    ("quantities as numbers", {"template": template({"resources": {"limits": {"cpu": 0.5, "memory": 1000000}}})}),
)

_BAD_SPECS: Table = (
    ("no selector", {"selector": None}, ("spec.selector",)),
    ("no template", {"template": None}, ("spec.template",)),
    ("an empty selector", {"selector": {}}, ("spec.selector",)),
    ("an empty list of labels", {"selector": {"matchLabels": {}}}, ("spec.selector",)),
    ("a selector of other pods", {"selector": {"matchLabels": {"app": "other"}}}, ("spec.template.metadata.labels",)),
    ("an expression for other pods", {"selector": {"matchExpressions": [requirement("NotIn", "agent", key="app")]}}, ("spec.template.metadata.labels",)),
    ("an expression that nothing satisfies", {"selector": {"matchExpressions": [requirement("Exists", key="zone")]}}, ("spec.template.metadata.labels",)),
    ("a bad label key", {"selector": {"matchLabels": {"app": "agent", "-a": "b"}}}, ("spec.selector.matchLabels", "spec.template.metadata.labels")),
    ("a bad label value", {"selector": {"matchLabels": {"app": "-"}}}, ("spec.selector.matchLabels", "spec.template.metadata.labels")),
    ("a label value too long", {"selector": {"matchLabels": {"app": "a" * 64}}}, ("spec.selector.matchLabels.app",)),
    ("an unknown operator", {"selector": {"matchLabels": {"app": "agent"}, "matchExpressions": [requirement("Near", "a")]}}, ("spec.selector.matchExpressions[0].operator",)),
    ("an expression without values", {"selector": {"matchLabels": {"app": "agent"}, "matchExpressions": [requirement("NotIn")]}}, ("spec.selector.matchExpressions[0].values",)),
    ("an expression with values too many", {"selector": {"matchExpressions": [requirement("Exists", "agent", key="app")]}}, ("spec.selector.matchExpressions[0].values",)),
    ("an expression without a key", {"selector": {"matchExpressions": [{"operator": "Exists"}]}}, ("spec.selector.matchExpressions[0].key",)),
    ("an expression with a bad key", {"selector": {"matchLabels": {"app": "agent"}, "matchExpressions": [requirement("DoesNotExist", key="a/b/c")]}}, ("spec.selector.matchExpressions[0].key",)),
    ("an expression with a bad value", {"selector": {"matchLabels": {"app": "agent"}, "matchExpressions": [requirement("NotIn", "x y")]}}, ("spec.selector.matchExpressions[0].values[0]",)),
    ("a negative wait", {"minReadySeconds": -1}, ("spec.minReadySeconds",)),
    ("a wait in words", {"minReadySeconds": "30s"}, ("spec.minReadySeconds",)),
    ("a negative history", {"revisionHistoryLimit": -1}, ("spec.revisionHistoryLimit",)),
    ("a negative burst", {"burstReplicas": -1}, ("spec.burstReplicas",)),
    ("a burst in words", {"burstReplicas": "many"}, ("spec.burstReplicas",)),
    ("a burst of a fraction", {"burstReplicas": 1.5}, ("spec.burstReplicas",)),
    ("an unknown strategy", {"updateStrategy": {"type": "Ondelete"}}, ("spec.updateStrategy.type",)),
    ("a strategy that is a text", {"updateStrategy": "RollingUpdate"}, ("spec.updateStrategy",)),
    ("an unknown way to update", rolling(rollingUpdateType="Inplace"), (f"{ROLLING}.rollingUpdateType",)),
    ("an unknown way by the other spelling", rolling(type="Sideways"), (f"{ROLLING}.type",)),
    ("spellings that differ", rolling(type="Standard", rollingUpdateType="InPlaceIfPossible"), (f"{ROLLING}.type",)),
    ("negative unavailable", rolling(maxUnavailable=-1), (f"{ROLLING}.maxUnavailable",)),
    ("unavailable in words", rolling(maxUnavailable="abc"), (f"{ROLLING}.maxUnavailable",)),
    ("unavailable with a line end", rolling(maxUnavailable="5%\n"), (f"{ROLLING}.maxUnavailable",)),
    ("unavailable as text", rolling(maxUnavailable="5"), (f"{ROLLING}.maxUnavailable",)),
    ("negative percentage", rolling(maxUnavailable="-5%"), (f"{ROLLING}.maxUnavailable",)),
    ("more than all unavailable", rolling(maxUnavailable="101%"), (f"{ROLLING}.maxUnavailable",)),
    ("more than all surging", rolling(maxSurge="1000%"), (f"{ROLLING}.maxSurge",)),
    ("malformed on delete", {"updateStrategy": {"type": "OnDelete", "rollingUpdate": {"maxUnavailable": "abc"}}}, (f"{ROLLING}.maxUnavailable",)),
    ("both amounts", rolling(maxUnavailable=1, maxSurge=1), (f"{ROLLING}.maxSurge",)),
    ("both amounts zero", rolling(maxUnavailable=0, maxSurge=0), (f"{ROLLING}.maxUnavailable",)),
    ("both amounts zero percent", rolling(maxUnavailable="0%", maxSurge="00%"), (f"{ROLLING}.maxUnavailable",)),
    ("no surge and nothing else", rolling(maxSurge=0), (f"{ROLLING}.maxUnavailable",)),
    ("none unavailable and nothing else", rolling(maxUnavailable=0), (f"{ROLLING}.maxUnavailable",)),
    ("surging without a surge", rolling(rollingUpdateType="Surging", maxSurge=0), (f"{ROLLING}.maxUnavailable",)),
    ("surging with some unavailable", rolling(type="Surging", maxUnavailable=1, maxSurge=1), (f"{ROLLING}.maxSurge",)),
    ("in place with a surge", rolling(rollingUpdateType="InPlaceIfPossible", maxSurge=1), (f"{ROLLING}.maxSurge",)),
    ("a negative partition", rolling(partition=-1), (f"{ROLLING}.partition",)),
    ("a partition above all", rolling(partition="150%"), (f"{ROLLING}.partition",)),
    ("paused in words", rolling(paused="yes"), (f"{ROLLING}.paused",)),
    ("expressions too many", rolling(selector={"matchExpressions": [requirement("Exists", key=f"k{n}") for n in range(33)]}), (f"{ROLLING}.selector.matchExpressions",)),
    ("a value too long", rolling(selector={"matchExpressions": [requirement("In", "a" * 64)]}), (f"{ROLLING}.selector.matchExpressions[0].values[0]",)),
    ("a huge number", {"minReadySeconds": 2**31}, ("spec.minReadySeconds",)),
    ("a huge burst", {"burstReplicas": "99999999999%"}, ("spec.burstReplicas",)),
    ("a huge partition", rolling(partition="99999999999%"), (f"{ROLLING}.partition",)),
    ("a huge amount", rolling(maxUnavailable=2**31), (f"{ROLLING}.maxUnavailable",)),
    ("nodes by an unknown operator", rolling(selector={"matchExpressions": [requirement("in", "a")]}), (f"{ROLLING}.selector.matchExpressions[0].operator",)),
    ("nodes by a bad label", rolling(selector={"matchLabels": {"a b": "c"}}), (f"{ROLLING}.selector.matchLabels",)),
    ("an update hook", {"lifecycle": {"inPlaceUpdate": {"labelsHandler": {"a": "b"}}}}, ("spec.lifecycle.inPlaceUpdate",)),
    ("a hook with a number", {"lifecycle": {"preDelete": {"labelsHandler": {"a": 1}}}}, ("spec.lifecycle.preDelete.labelsHandler.a",)),
    ("a pod that ends", {"template": template(restartPolicy="Never")}, (f"{POD_SPEC}.restartPolicy",)),
    ("a pod with a deadline", {"template": template(activeDeadlineSeconds=5)}, (f"{POD_SPEC}.activeDeadlineSeconds",)),
    ("an image that is a number", {"template": template({"image": 5})}, (f"{CONTAINER}.image",)),
    ("containers that are a map", {"template": template(containers={"a": 1})}, (f"{POD_SPEC}.containers",)),
    ("containers of one name", {"template": template(containers=_TWINS)}, (f"{POD_SPEC}.containers[1]",)),
    ("volumes of one name", {"template": template(volumes=[{"name": "a"}, {"name": "a"}])}, (f"{POD_SPEC}.volumes[1]",)),
    ("a container without a name", {"template": template(containers=[{"image": "a"}])}, (f"{POD_SPEC}.containers[0].name",)),
    ("a container without an image", {"template": template(containers=[{"name": "a"}])}, (f"{POD_SPEC}.containers[0].image",)),
    ("an init container without an image", {"template": template(initContainers=[{"name": "a"}])}, (f"{POD_SPEC}.initContainers[0].image",)),
    ("a container without anything", {"template": template(containers=[{}])}, (f"{POD_SPEC}.containers[0].image", f"{POD_SPEC}.containers[0].name")),
    ("a template without containers", {"template": {"metadata": {"labels": {"app": "agent"}}, "spec": {"nodeName": "a"}}}, (f"{POD_SPEC}.containers",)),
    ("a template without a spec", {"template": {"metadata": {"labels": {"app": "agent"}}}}, (POD_SPEC,)),
)

_BAD_METADATA: Table = (
    ("a name in capitals", {"name": "Agent"}, ("metadata.name",)),
    ("a bad label on the object", {"labels": {"a b": "c"}}, ("metadata.labels",)),
    ("a bad annotation", {"annotations": {"a b": "c"}}, ("metadata.annotations",)),
    ("a bad finalizer", {"finalizers": ["example.com/a b"]}, ("metadata.finalizers",)),
    ("a name too long", {"name": "a" * 254}, ("metadata.name",)),
    ("finalizers that exclude each other", {"finalizers": ["orphan", "foregroundDeletion"]}, ("metadata.finalizers",)),
    ("an event as the owner", {"ownerReferences": [{"apiVersion": "v1", "kind": "Event", "name": "a", "uid": "u"}]}, ("metadata.ownerReferences[0]",)),
    ("an owner of no kind", {"ownerReferences": [{"apiVersion": "", "kind": "", "name": "a", "uid": ""}]}, ("metadata.ownerReferences[0].apiVersion", "metadata.ownerReferences[0].kind", "metadata.ownerReferences[0].uid")),
    ("two controllers", {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": name, "uid": name, "controller": True} for name in ("a", "b")]}, ("metadata.ownerReferences",)),
    ("annotations too large", {"annotations": {"a": "b" * 2**18}}, ("metadata.annotations",)),
    ("an owner without a name", {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "", "uid": "u"}]}, ("metadata.ownerReferences[0].name",)),
)


# --- Templates ---------------------------------------------------------------------------------

_HTTP: Object = {"httpGet": {"port": 80}}
_HOST_PATH: Object = {"name": "data", "hostPath": {"path": "/data"}}
_CLAIM: Object = {"name": "data", "persistentVolumeClaim": {"claimName": "c"}}
_MOUNT: Object = {"name": "data", "mountPath": "/data"}

_GOOD_TEMPLATES: tuple[tuple[str, Object], ...] = (
    ("a plain template", template()),
    ("probes", template({"livenessProbe": _HTTP, "readinessProbe": {"tcpSocket": {"port": "web"}}, "startupProbe": {"exec": {"command": ["true"]}, "failureThreshold": 30}})),
    ("ports", template({"ports": [{"containerPort": 80, "name": "web", "hostPort": 80}, {"containerPort": 80, "protocol": "UDP", "hostPort": 80}]})),
    ("the host's network", template({"ports": [{"containerPort": 80}, {"containerPort": 81, "hostPort": 81}]}, hostNetwork=True, hostPID=True)),
    ("variables", template({"env": [{"name": "A"}, {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}, {"name": "L", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}}, {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}}, {"name": "S", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}], "envFrom": [{"configMapRef": {"name": "c"}, "prefix": "P_"}]})),
    ("volumes", template({"volumeMounts": [_MOUNT, {"name": "tmp", "mountPath": "/tmp", "subPath": "a"}]}, volumes=[_HOST_PATH, {"name": "tmp"}, {"name": "conf", "configMap": {"name": "c", "items": [{"key": "a", "path": "b/c"}]}}, {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}, {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}}]}}])),
    ("tolerations", template(tolerations=[{"operator": "Exists"}, {"key": "a", "value": "b", "effect": "NoSchedule"}, {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}])),
    ("affinity", template(affinity=node_affinity({"matchExpressions": [requirement("Gt", "5"), requirement("Exists")]}, {"matchFields": [requirement("In", "node-1", key="metadata.name")]}))),
    ("resources", template({"resources": {"limits": {"cpu": "1", "memory": "1Gi", "example.com/gpu": 2}, "requests": {"cpu": "100m"}}})),
    ("an init container and a sidecar", template(initContainers=[{"name": "init", "image": "i"}, {"name": "side", "image": "s", "restartPolicy": "Always", "readinessProbe": _HTTP}])),
    ("security", template({"securityContext": {"privileged": True, "runAsUser": 0, "capabilities": {"add": ["NET_ADMIN"]}, "seccompProfile": {"type": "RuntimeDefault"}}}, securityContext={"fsGroup": 1, "sysctls": [{"name": "net.core.somaxconn", "value": "1"}]})),
    ("every volume", template(volumes=[{"name": "a", "iscsi": {"targetPortal": "1.2.3.4", "iqn": "iqn.2026-01.com.example:a", "lun": 0}}, {"name": "b", "rbd": {"monitors": ["a"], "image": "i"}}, {"name": "c", "azureDisk": {"diskName": "d", "diskURI": "https://example.com/d"}}, {"name": "d", "scaleIO": {"gateway": "g", "system": "s", "secretRef": {"name": "s"}, "volumeName": "v"}}, {"name": "e", "image": {"reference": "i:1"}}, {"name": "f", "secret": {"secretName": "s"}}, {"name": "g", "emptyDir": {"sizeLimit": "1024Mi"}}, {"name": "h", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}}}}, {"name": "i", "downwardAPI": {"items": [{"path": "p", "resourceFieldRef": {"containerName": "agent", "resource": "limits.cpu"}}]}}, {"name": "j", "hostPath": {"path": "/"}}])),
    ("handlers", template({"livenessProbe": {"grpc": {"port": 1}}, "lifecycle": {"preStop": {"httpGet": {"port": 1}}}, "image": "a"})),
    ("lifecycle", template({"lifecycle": {"preStop": {"sleep": {"seconds": 5}}, "postStart": {"exec": {"command": ["true"]}}}})),
    ("spreading", template(topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": SELECTOR}])),
    ("names", template(serviceAccountName="robot", priorityClassName="system-node-critical", dnsPolicy="None", dnsConfig={"nameservers": ["10.0.0.1"], "searches": ["example.com"]}, hostAliases=[{"ip": "10.0.0.2", "hostnames": ["db"]}], imagePullSecrets=[{"name": "s"}])),
)


# Errors in one container; paths are relative to it.
_PROBE = "livenessProbe"
_PORT = "ports[0]"
_BAD_CONTAINERS: Table = (
    ("a name in capitals", {"name": "Agent"}, ("name",)),
    ("a name with dots", {"name": "a.b"}, ("name",)),
    ("a name too long", {"name": "a" * 64}, ("name",)),
    ("no name", {"name": ""}, ("name",)),
    ("no image", {"image": ""}, ("image",)),
    ("an unknown pull policy", {"imagePullPolicy": "Sometimes"}, ("imagePullPolicy",)),
    ("an unknown message policy", {"terminationMessagePolicy": "Nowhere"}, ("terminationMessagePolicy",)),
    ("a port too high", {"ports": [{"containerPort": 70000}]}, (f"{_PORT}.containerPort",)),
    ("a port without a number", {"ports": [{"name": "web"}]}, (f"{_PORT}.containerPort",)),
    ("a host port too low", {"ports": [{"containerPort": 1, "hostPort": -1}]}, (f"{_PORT}.hostPort",)),
    ("a port of an unknown protocol", {"ports": [{"containerPort": 1, "protocol": "tcp"}]}, (f"{_PORT}.protocol",)),
    ("a port with a bad name", {"ports": [{"containerPort": 1, "name": "Web"}]}, (f"{_PORT}.name",)),
    ("ports of one name", {"ports": [{"containerPort": 1, "name": "web"}, {"containerPort": 2, "name": "web"}]}, ("ports[1].name",)),
    ("a host port taken twice", {"ports": [{"containerPort": 1, "hostPort": 5}, {"containerPort": 2, "hostPort": 5}]}, ("ports[1].hostPort",)),
    ("a variable without a name", {"env": [{"value": "x"}]}, ("env[0].name",)),
    ("a variable with a bad name", {"env": [{"name": "A=B"}]}, ("env[0].name",)),
    ("a variable from nowhere", {"env": [{"name": "A", "valueFrom": {}}]}, ("env[0].valueFrom",)),
    ("a variable from two places", {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}, "configMapKeyRef": {"name": "a", "key": "b"}}}]}, ("env[0].valueFrom",)),
    ("a variable with value and source", {"env": [{"name": "A", "value": "b", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}, ("env[0].valueFrom",)),
    ("a variable from an unknown field", {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.color"}}}]}, ("env[0].valueFrom.fieldRef.fieldPath",)),
    ("a variable from a field of files", {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels"}}}]}, ("env[0].valueFrom.fieldRef.fieldPath",)),
    ("a variable from a bad label", {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a b']"}}}]}, ("env[0].valueFrom.fieldRef",)),
    ("a variable from an unknown resource", {"env": [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.disk"}}}]}, ("env[0].valueFrom.resourceFieldRef.resource",)),
    ("a variable divided by too much", {"env": [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "5"}}}]}, ("env[0].valueFrom.resourceFieldRef.divisor",)),
    ("a variable from a key with a slash", {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "a/b"}}}]}, ("env[0].valueFrom.secretKeyRef.key",)),
    ("a variable from a secret without a name", {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"key": "a"}}}]}, ("env[0].valueFrom.secretKeyRef.name",)),
    ("variables from nowhere", {"envFrom": [{"prefix": "A"}]}, ("envFrom",)),
    ("variables from a map without a name", {"envFrom": [{"configMapRef": {}}]}, ("envFrom[0].configMapRef.name",)),
    ("a mount of nothing", {"volumeMounts": [_MOUNT]}, ("volumeMounts[0].name",)),
    ("a probe without a handler", {_PROBE: {"periodSeconds": 5}}, (_PROBE,)),
    ("a probe with two handlers", {_PROBE: {"httpGet": {"port": 1}, "tcpSocket": {"port": 1}}}, (f"{_PROBE}.tcpSocket",)),
    ("a probe at port 0", {_PROBE: {"httpGet": {"port": 0}}}, (f"{_PROBE}.httpGet.port",)),
    ("a probe at a bad port name", {_PROBE: {"tcpSocket": {"port": "80"}}}, (f"{_PROBE}.tcpSocket.port",)),
    ("a probe of an unknown scheme", {_PROBE: {"httpGet": {"port": 1, "scheme": "FTP"}}}, (f"{_PROBE}.httpGet.scheme",)),
    ("a probe with a bad header", {_PROBE: {"httpGet": {"port": 1, "httpHeaders": [{"name": "a b", "value": ""}]}}}, (f"{_PROBE}.httpGet.httpHeaders",)),
    ("a probe without a command", {_PROBE: {"exec": {}}}, (f"{_PROBE}.exec.command",)),
    ("a negative probe", {_PROBE: _HTTP | {"periodSeconds": -1}}, (f"{_PROBE}.periodSeconds",)),
    ("a liveness probe that must succeed twice", {_PROBE: _HTTP | {"successThreshold": 2}}, (f"{_PROBE}.successThreshold",)),
    ("a readiness probe that kills", {"readinessProbe": _HTTP | {"terminationGracePeriodSeconds": 5}}, ("readinessProbe.terminationGracePeriodSeconds",)),
    ("a sleep longer than the grace", {"lifecycle": {"preStop": {"sleep": {"seconds": 60}}}}, ("lifecycle.preStop.sleep",)),
    ("a hook without a handler", {"lifecycle": {"postStart": {}}}, ("lifecycle.postStart",)),
    ("a request above its limit", {"resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}}, ("resources.requests",)),
    ("a negative limit", {"resources": {"limits": {"cpu": "-1"}}}, ("resources.limits[cpu]",)),
    ("an unknown resource", {"resources": {"limits": {"disk": "1"}}}, ("resources.limits[disk]", "resources.limits[disk]")),
    ("a device without a limit", {"resources": {"requests": {"example.com/gpu": 1}}}, ("resources.limits",)),
    ("half a device", {"resources": {"limits": {"example.com/gpu": "500m"}}}, ("resources.limits[example.com/gpu]",)),
    ("huge pages alone", {"resources": {"limits": {"hugepages-2Mi": "4Mi"}}}, ("resources",)),
    ("huge pages that do not fit", {"resources": {"limits": {"cpu": "1", "hugepages-2Mi": "3Mi"}}}, ("resources.limits[hugepages-2Mi]",)),
    ("a claim of nothing", {"resources": {"claims": [{"name": "gpu"}]}}, ("resources.claims[0]",)),
    ("an unknown resize policy", {"resizePolicy": [{"resourceName": "disk", "restartPolicy": "Maybe"}]}, ("resizePolicy", "resizePolicy")),
    ("a user too high", {"securityContext": {"runAsUser": 2**31}}, ("securityContext.runAsUser",)),
    ("a local profile without a name", {"securityContext": {"seccompProfile": {"type": "Localhost"}}}, ("securityContext.seccompProfile.localhostProfile",)),
    ("an unknown profile", {"securityContext": {"appArmorProfile": {"type": "Some"}}}, ("securityContext.appArmorProfile.type",)),
    ("an unknown restart policy", {"restartPolicy": "Once"}, ("restartPolicy",)),
    ("rules without a policy", {"restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}]}, ("restartPolicy",)),
    ("rules that do nothing", {"restartPolicy": "Never", "restartPolicyRules": [{"action": "Wait", "exitCodes": {"operator": "Is", "values": [1]}}]}, ("restartPolicyRules[0].action", "restartPolicyRules[0].exitCodes.operator")),
    ("a rule for any end", {"restartPolicy": "Never", "restartPolicyRules": [{"action": "Restart"}]}, ("restartPolicyRules[0].exitCodes",)),
    ("rules too many", {"restartPolicy": "Never", "restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}] * 21}, ("restartPolicyRules",)),
    ("one resource resized in two ways", {"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}] * 2}, ("resizePolicy[1]",)),
    ("a resize of nothing", {"resizePolicy": [{"resourceName": "", "restartPolicy": ""}]}, ("resizePolicy", "resizePolicy")),
    ("a port name with odd hyphens", {"ports": [{"containerPort": 1, "name": "-a--b"}]}, ("ports[0].name", "ports[0].name")),
    ("a port name too long", {"ports": [{"containerPort": 1, "name": "a-very-long-port-name"}]}, ("ports[0].name",)),
    ("a port name without a letter", {"ports": [{"containerPort": 1, "name": "80"}]}, ("ports[0].name",)),
    ("variables from two places", {"envFrom": [{"configMapRef": {"name": "a"}, "secretRef": {"name": "A"}}]}, ("envFrom[0].secretRef.name", "envFrom")),
    ("variables with a bad prefix", {"envFrom": [{"prefix": "A=", "secretRef": {"name": "a"}}]}, ("envFrom[0].prefix",)),
    ("a variable from a secret without a key", {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "a"}}}]}, ("env[0].valueFrom.secretKeyRef.key",)),
    ("a variable from the key ..", {"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "a", "key": ".."}}}]}, ("env[0].valueFrom.configMapKeyRef.key",)),
    ("a variable from a key of dots", {"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "..b"}}}]}, ("env[0].valueFrom.configMapKeyRef.key",)),
    ("a variable from an empty field", {"env": [{"name": "A", "valueFrom": {"fieldRef": {}}}]}, ("env[0].valueFrom.fieldRef.fieldPath",)),
    ("a variable from another version", {"env": [{"name": "A", "valueFrom": {"fieldRef": {"apiVersion": "v2", "fieldPath": "metadata.name"}}}]}, ("env[0].valueFrom.fieldRef.fieldPath",)),
    ("a variable from a part of a name", {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name['a']"}}}]}, ("env[0].valueFrom.fieldRef.fieldPath",)),
    ("a variable from a bad annotation", {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['a b']"}}}]}, ("env[0].valueFrom.fieldRef",)),
    ("a variable from no resource", {"env": [{"name": "A", "valueFrom": {"resourceFieldRef": {}}}]}, ("env[0].valueFrom.resourceFieldRef.resource",)),
    ("a variable of odd memory", {"env": [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "3"}}}]}, ("env[0].valueFrom.resourceFieldRef.divisor",)),
    ("a variable of odd huge pages", {"env": [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.hugepages-2Mi", "divisor": "3"}}}]}, ("env[0].valueFrom.resourceFieldRef.divisor",)),
    ("a resource with a bad name", {"resources": {"limits": {"a b": "1"}}}, ("resources.limits[a b]", "resources.limits[a b]")),
    ("a resource named like a quota", {"resources": {"limits": {"requests.example.com/a": "1"}}}, ("resources.limits[requests.example.com/a]",)),
    ("a device asked for in part", {"resources": {"limits": {"example.com/gpu": 2}, "requests": {"example.com/gpu": 1}}}, ("resources.requests",)),
    ("a claim without a name", {"resources": {"claims": [{"name": ""}]}}, ("resources.claims[0]",)),
    ("a group too low", {"securityContext": {"runAsGroup": -1}}, ("securityContext.runAsGroup",)),
    ("an unknown proc", {"securityContext": {"procMount": "Open"}}, ("securityContext.procMount",)),
    ("an open proc among the host's users", {"securityContext": {"procMount": "Unmasked"}}, ("securityContext.procMount",)),
    ("an unknown seccomp profile", {"securityContext": {"seccompProfile": {"type": "Some"}}}, ("securityContext.seccompProfile.type",)),
    ("a seccomp profile outside", {"securityContext": {"seccompProfile": {"type": "Localhost", "localhostProfile": "/a"}}}, ("securityContext.seccompProfile.localhostProfile",)),
    ("a profile without a type", {"securityContext": {"appArmorProfile": {}}}, ("securityContext.appArmorProfile.type",)),
    ("a profile with a name too many", {"securityContext": {"appArmorProfile": {"type": "Unconfined", "localhostProfile": "a"}}}, ("securityContext.appArmorProfile.localhostProfile",)),
    ("a profile without a name", {"securityContext": {"appArmorProfile": {"type": "Localhost"}}}, ("securityContext.appArmorProfile.localhostProfile",)),
    ("a profile with spaces", {"securityContext": {"appArmorProfile": {"type": "Localhost", "localhostProfile": " a"}}}, ("securityContext.appArmorProfile.localhostProfile",)),
    ("a probe that kills at once", {"livenessProbe": _HTTP | {"terminationGracePeriodSeconds": 0}}, ("livenessProbe.terminationGracePeriodSeconds",)),
)


# Errors in the mounts of the only volume, `data`; paths are relative to the container.
_BAD_MOUNTS: Table = (
    ("a mount without a path", {"name": "data"}, ("volumeMounts[0].mountPath",)),
    ("an absolute part of a volume", _MOUNT | {"subPath": "/etc"}, ("volumeMounts.subPath",)),
    ("a part outside of the volume", _MOUNT | {"subPath": "../etc"}, ("volumeMounts.subPath",)),
    ("both ways to name a part", _MOUNT | {"subPath": "a", "subPathExpr": "b"}, ("volumeMounts[0].subPathExpr",)),
    ("mounts for the host without privilege", _MOUNT | {"mountPropagation": "Bidirectional"}, ("volumeMounts.mountPropagation",)),
    ("an unknown propagation", _MOUNT | {"mountPropagation": "Both"}, ("volumeMounts.mountPropagation",)),
    ("a mount without a name", {"mountPath": "/a"}, ("volumeMounts[0].name", "volumeMounts[0].name")),
    ("an unknown read-only mode", _MOUNT | {"recursiveReadOnly": "Maybe"}, ("volumeMounts.recursiveReadOnly",)),
    ("read only all the way down, but shared", _MOUNT | {"readOnly": True, "recursiveReadOnly": "Enabled", "mountPropagation": "HostToContainer"}, ("volumeMounts.recursiveReadOnly",)),
    ("read only all the way down, but writable", _MOUNT | {"recursiveReadOnly": "Enabled"}, ("volumeMounts.recursiveReadOnly",)),
)


# Errors in one volume; paths are relative to it.
_BAD_VOLUMES: Table = (
    ("a volume with two sources", {"emptyDir": {}, "hostPath": {"path": "/"}}, ("hostPath",)),
    ("a volume without a name", {"name": "", "emptyDir": {}}, ("name",)),
    ("a volume with a bad name", {"name": "a_b", "emptyDir": {}}, ("name",)),
    ("a host path without a path", {"hostPath": {}}, ("hostPath.path",)),
    ("a host path that goes up", {"hostPath": {"path": "/a/../b"}}, ("hostPath.path",)),
    ("a host path of an unknown type", {"hostPath": {"path": "/a", "type": "Folder"}}, ("hostPath.type",)),
    ("a secret without a name", {"secret": {}}, ("secret.secretName",)),
    ("a config map without a name", {"configMap": {}}, ("configMap.name",)),
    ("a mode too high", {"configMap": {"name": "c", "defaultMode": 1000}}, ("configMap.defaultMode",)),
    ("a file outside of the volume", {"configMap": {"name": "c", "items": [{"key": "a", "path": "../b"}]}}, ("configMap.items[0].path",)),
    ("a file without a key", {"secret": {"secretName": "c", "items": [{"path": "b"}]}}, ("secret.items[0].key",)),
    ("a claim without a name", {"persistentVolumeClaim": {}}, ("persistentVolumeClaim.claimName",)),
    ("a negative size", {"emptyDir": {"sizeLimit": "-1"}}, ("emptyDir.sizeLimit",)),
    ("a short token", {"projected": {"sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 5}}]}}, ("projected.sources[0].serviceAccountToken.expirationSeconds",)),
    ("files of one path", {"projected": {"sources": [{"secret": {"name": "a", "items": [{"key": "a", "path": "p"}]}}, {"configMap": {"name": "b", "items": [{"key": "a", "path": "p"}]}}]}}, ("projected",)),
    ("a file from nowhere", {"downwardAPI": {"items": [{"path": "a"}]}}, ("downwardAPI",)),
    ("a file from a field of variables", {"downwardAPI": {"items": [{"path": "a", "fieldRef": {"fieldPath": "status.podIP"}}]}}, ("downwardAPI.fieldRef.fieldPath",)),
    ("a driver with a long name", {"csi": {"driver": "a" * 64}}, ("csi.driver",)),
    ("no driver", {"csi": {}}, ("csi.driver",)),
    ("a relative path on a server", {"nfs": {"server": "s", "path": "a"}}, ("nfs.path",)),
    ("a long token", {"projected": {"sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 2**33}}]}}, ("projected.sources[0].serviceAccountToken.expirationSeconds",)),
    ("a token without a file", {"projected": {"sources": [{"serviceAccountToken": {"path": ""}}]}}, ("projected.path",)),
    ("a projection of nothing", {"projected": {"sources": [{"secret": {}}]}}, ("projected.sources[0].secret.name",)),
    ("two projections in one", {"projected": {"sources": [{"secret": {"name": "a"}, "configMap": {"name": "b"}}]}}, ("projected.sources[0]",)),
    ("a file of reserved name", {"secret": {"secretName": "a", "items": [{"key": "a", "path": "..b"}]}}, ("secret.items[0].path",)),
    ("a file of two origins", {"downwardAPI": {"items": [{"path": "a", "fieldRef": {"fieldPath": "metadata.name"}, "resourceFieldRef": {"containerName": "agent", "resource": "limits.cpu"}}]}}, ("downwardAPI",)),
    ("a file from no container", {"downwardAPI": {"items": [{"path": "a", "resourceFieldRef": {"resource": "limits.cpu"}}]}}, ("downwardAPI.resourceFieldRef.containerName",)),
    ("a file without a path", {"downwardAPI": {"items": [{"fieldRef": {"fieldPath": "metadata.name"}}]}}, ("downwardAPI.path",)),
    ("an ephemeral claim without a template", {"ephemeral": {}}, ("ephemeral.volumeClaimTemplate",)),
    ("a driver with a bad name", {"csi": {"driver": "a_b"}}, ("csi.driver",)),
    ("a server without a path", {"nfs": {"server": "s"}}, ("nfs.path", "nfs.path")),
    ("an ephemeral claim of nothing", {"ephemeral": {"volumeClaimTemplate": {"spec": {}}}}, ("ephemeral.volumeClaimTemplate.spec.accessModes", "ephemeral.volumeClaimTemplate.spec.resources[storage]")),
)


# Errors in the pod; paths are relative to its spec.
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_NODES = f"affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
_PODS = f"affinity.podAntiAffinity.{_REQUIRED}[0]"
_PREFERRED = "affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]"
_SPREAD: Object = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
_BAD_POD_SPECS: Table = (
    ("no containers", {"containers": []}, ("containers",)),
    ("an init container of the same name", {"initContainers": [{"name": "agent", "image": "a"}]}, ("initContainers[0].name",)),
    ("an init container that is probed", {"initContainers": [{"name": "a", "image": "a", "livenessProbe": _HTTP}]}, ("initContainers[0].livenessProbe",)),
    ("a debug container", {"ephemeralContainers": [{"name": "d", "image": "d"}]}, ("ephemeralContainers",)),
    ("an init container that needs a restart to grow", {"initContainers": [{"name": "a", "image": "a", "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]}]}, ("initContainers[0].resizePolicy[0].restartPolicy",)),
    ("paths mounted twice", {"volumes": [_HOST_PATH], "containers": [{"name": "a", "image": "a", "volumeMounts": [_MOUNT, _MOUNT]}]}, ("containers[0].volumeMounts[1].mountPath",)),
    ("a device that is mounted", {"volumes": [_CLAIM], "containers": [{"name": "a", "image": "a", "volumeMounts": [_MOUNT], "volumeDevices": [{"name": "data", "devicePath": "/data"}]}]}, ("containers[0].volumeMounts[0].name", "containers[0].volumeMounts[0].mountPath", "containers[0].volumeDevices[0].name", "containers[0].volumeDevices[0].devicePath")),
    ("a device that is a folder", {"volumes": [_HOST_PATH], "containers": [{"name": "a", "image": "a", "volumeDevices": [{"name": "data", "devicePath": "/dev/a"}]}]}, ("containers[0].volumeDevices[0].name",)),
    ("a device of nothing", {"containers": [{"name": "a", "image": "a", "volumeDevices": [{"name": "", "devicePath": "../a"}]}]}, ("containers[0].volumeDevices[0].name", "containers[0].volumeDevices[0].name", "containers[0].volumeDevices[0].devicePath")),
    ("devices of one name and path", {"volumes": [_CLAIM], "containers": [{"name": "a", "image": "a", "volumeDevices": [{"name": "data", "devicePath": "/a"}] * 2}]}, ("containers[0].volumeDevices[1].name", "containers[0].volumeDevices[1].devicePath")),
    ("a device without a path", {"volumes": [_CLAIM], "containers": [{"name": "a", "image": "a", "volumeDevices": [{"name": "data"}]}]}, ("containers[0].volumeDevices[0].devicePath",)),
    ("a device among own users", {"hostUsers": False, "volumes": [_CLAIM], "containers": [{"name": "a", "image": "a", "volumeDevices": [{"name": "data", "devicePath": "/a"}]}]}, ("containers[0].volumeDevices",)),
    ("a variable from a file of a map", {"volumes": [_HOST_PATH], "containers": [{"name": "a", "image": "a", "env": [{"name": "A", "valueFrom": {"fileKeyRef": {"volumeName": "data", "path": "../a", "key": "a="}}}]}]}, ("containers[0].env[0].valueFrom.fileKeyRef.key", "containers[0].env[0].valueFrom.fileKeyRef.path", "containers[0].env[0].valueFrom.fileKeyRef.volumeName")),
    ("a variable from no file", {"containers": [{"name": "a", "image": "a", "env": [{"name": "A", "valueFrom": {"fileKeyRef": {}}}]}]}, ("containers[0].env[0].valueFrom.fileKeyRef.key", "containers[0].env[0].valueFrom.fileKeyRef.volumeName", "containers[0].env[0].valueFrom.fileKeyRef.path", "containers[0].env[0].valueFrom.fileKeyRef.volumeName")),
    ("shared processes beside the host's", {"shareProcessNamespace": True, "hostPID": True}, ("shareProcessNamespace",)),
    ("own users with the host's memory", {"hostUsers": False, "hostIPC": True}, ("HostIPC",)),
    ("odd groups", {"securityContext": {"supplementalGroups": [-1], "fsGroupChangePolicy": "No", "supplementalGroupsPolicy": "No", "seLinuxChangePolicy": "No"}}, ("securityContext.supplementalGroups[0]", "securityContext.fsGroupChangePolicy", "securityContext.supplementalGroupsPolicy", "securityContext.seLinuxChangePolicy")),
    ("a sysctl without a name", {"securityContext": {"sysctls": [{"name": "", "value": "1"}]}}, ("securityContext.sysctls[0].name",)),
    ("a seccomp profile with a name too many", {"securityContext": {"appArmorProfile": {"type": "Other"}}}, ("securityContext.appArmorProfile.type",)),
    ("claims of the pod twice", {"resourceClaims": [{"name": "gpu", "resourceClaimName": "x"}], "containers": [{"name": "a", "image": "a", "resources": {"claims": [{"name": "gpu"}, {"name": "gpu"}, {"name": "tpu"}]}}]}, ("containers[0].resources.claims[1]", "containers[0].resources.claims[2]")),
    ("an overhead of nothing", {"overhead": {"disk": "1"}}, ("overhead.limits[disk]", "overhead.limits[disk]")),
    ("an unknown preemption", {"preemptionPolicy": "Always"}, ("preemptionPolicy",)),
    ("an os without a name", {"os": {"name": ""}}, ("os.name",)),
    ("no name servers at all", {"dnsPolicy": "None", "dnsConfig": {"searches": ["a"]}}, ("dnsConfig.nameservers",)),
    ("search paths too many", {"dnsConfig": {"searches": ["a"] * 33}}, ("dnsConfig.searches",)),
    ("search paths too long", {"dnsConfig": {"searches": [".".join(["a" * 60] * 4)] * 9}}, ("dnsConfig.searches",)),
    ("an option of dns without a name", {"dnsConfig": {"options": [{"value": "1"}]}}, ("dnsConfig.options[0]",)),
    ("a bad scheduling gate, twice", {"schedulingGates": [{"name": "a b"}, {"name": "a b"}]}, ("schedulingGates[0]", "schedulingGates[1]", "schedulingGates[1]")),
    ("affinity above no number", {"affinity": node_affinity({"matchExpressions": [requirement("In", "a b", key="x y")]})}, (f"{_NODES}[0].matchExpressions[0].key", f"{_NODES}[0].matchExpressions[0].values[0]")),
    ("affinity to two nodes by field", {"affinity": node_affinity({"matchFields": [requirement("In", "a", "b", key="metadata.name"), requirement("Exists", key="metadata.name")]})}, (f"{_NODES}[0].matchFields[0].values", f"{_NODES}[0].matchFields[1].operator")),
    ("affinity preferred too much", {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 0, "preference": {"matchExpressions": [requirement("Exists", "a")]}}]}}}, ("affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight", "affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0].values")),
    ("affinity in a bad namespace", {"affinity": pod_affinity({"topologyKey": "zone", "namespaces": ["A"]})}, (f"{_PODS}.namespace",)),
    ("affinity by bad selectors", {"affinity": pod_affinity({"topologyKey": "zone", "labelSelector": {"matchExpressions": [requirement("Is", "a")]}, "namespaceSelector": {"matchLabels": {"a b": "c"}}})}, (f"{_PODS}.labelSelector.matchExpressions[0].operator", f"{_PODS}.namespaceSelector.matchLabels")),
    ("affinity by keys that exclude each other", {"affinity": pod_affinity({"topologyKey": "zone", "labelSelector": SELECTOR, "matchLabelKeys": ["a"], "mismatchLabelKeys": ["a", "b c"]})}, (f"{_PODS}.mismatchLabelKeys[1]", f"{_PODS}.matchLabelKeys[0]")),
    ("spreading over nothing", {"topologySpreadConstraints": [_SPREAD | {"topologyKey": ""}]}, ("topologySpreadConstraints[0].topologyKey",)),
    ("spreading over no domains", {"topologySpreadConstraints": [_SPREAD | {"minDomains": 0}]}, ("topologySpreadConstraints[0].minDomains",)),
    ("spreading by wishes over domains", {"topologySpreadConstraints": [_SPREAD | {"whenUnsatisfiable": "ScheduleAnyway", "minDomains": 2}]}, ("topologySpreadConstraints[0].minDomains",)),
    ("spreading by unknown policies", {"topologySpreadConstraints": [_SPREAD | {"nodeAffinityPolicy": "Maybe", "labelSelector": {"matchLabels": {"a": "b c"}}}]}, ("topologySpreadConstraints[0].nodeAffinityPolicy", "topologySpreadConstraints[0].labelSelector.matchLabels")),
    ("a toleration above a number", {"tolerations": [{"key": "a", "operator": "Gt", "value": "5"}]}, ("tolerations[0].operator",)),
    ("a toleration of a bad value", {"tolerations": [{"key": "a", "value": "b c"}]}, ("tolerations[0].operator",)),
    ("an unknown dns policy", {"dnsPolicy": "Mine"}, ("dnsPolicy",)),
    ("no dns at all", {"dnsPolicy": "None"}, ("dnsConfig",)),
    ("a name server by name", {"dnsConfig": {"nameservers": ["dns"]}}, ("dnsConfig.nameservers[0]",)),
    ("name servers too many", {"dnsConfig": {"nameservers": ["1.1.1.1", "1.1.1.2", "1.1.1.3", "1.1.1.4"]}}, ("dnsConfig.nameservers",)),
    ("a bad search path", {"dnsConfig": {"searches": ["a b"]}}, ("dnsConfig.searches[0]",)),
    ("a bad node label", {"nodeSelector": {"a b": "c"}}, ("nodeSelector",)),
    ("a bad node label value", {"nodeSelector": {"a": "b c"}}, ("nodeSelector",)),
    ("an effect that does not exist", {"tolerations": [{"key": "a", "effect": "NoScheduler"}]}, ("tolerations[0].effect",)),
    ("an operator that does not exist", {"tolerations": [{"key": "a", "operator": "Is"}]}, ("tolerations[0].operator",)),
    ("a toleration with a bad key", {"tolerations": [{"key": "a b", "operator": "Exists"}]}, ("tolerations[0].key",)),
    ("a toleration without a key", {"tolerations": [{"value": "a"}]}, ("tolerations[0].operator",)),
    ("a toleration of any value, but one", {"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]}, ("tolerations[0].operator",)),
    ("a toleration for a while", {"tolerations": [{"key": "a", "effect": "NoSchedule", "tolerationSeconds": 5}]}, ("tolerations[0].effect",)),
    ("affinity to no terms", {"affinity": node_affinity()}, (_NODES,)),
    ("affinity by an unknown operator", {"affinity": node_affinity({"matchExpressions": [requirement("in", "a")]})}, (f"{_NODES}[0].matchExpressions[0].operator",)),
    ("affinity above two values", {"affinity": node_affinity({"matchExpressions": [requirement("Gt", "1", "2")]})}, (f"{_NODES}[0].matchExpressions[0].values",)),
    ("affinity to an unknown field", {"affinity": node_affinity({"matchFields": [requirement("In", "a", key="spec.color")]})}, (f"{_NODES}[0].matchFields[0].key",)),
    ("affinity to a bad node name", {"affinity": node_affinity({"matchFields": [requirement("In", "A_B", key="metadata.name")]})}, (f"{_NODES}[0].matchFields[0].values[0]",)),
    ("affinity to pods nowhere", {"affinity": pod_affinity({"labelSelector": SELECTOR})}, (f"{_PODS}.topologyKey",) * 3),
    ("affinity of an odd weight", {"affinity": pod_affinity({"topologyKey": "zone"}, weight=101)}, (f"{_PREFERRED}.weight",)),
    ("affinity by keys of nothing", {"affinity": pod_affinity({"topologyKey": "zone", "matchLabelKeys": ["a"]})}, (f"{_PODS}.matchLabelKeys",)),
    ("spreading by nothing", {"topologySpreadConstraints": [_SPREAD | {"maxSkew": 0}]}, ("topologySpreadConstraints[0].maxSkew",)),
    ("spreading by an unknown way", {"topologySpreadConstraints": [_SPREAD | {"whenUnsatisfiable": "Never"}]}, ("topologySpreadConstraints[0].whenUnsatisfiable",)),
    ("spreading twice", {"topologySpreadConstraints": [_SPREAD, _SPREAD]}, ("topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}",)),
    ("a host port beside the host's network", {"hostNetwork": True, "containers": [{"name": "a", "image": "a", "ports": [{"containerPort": 1, "hostPort": 2}]}]}, ("containers[0].ports[0].hostPort",)),
    ("a bad service account", {"serviceAccountName": "A"}, ("serviceAccountName",)),
    ("a bad priority class", {"priorityClassName": "A"}, ("priorityClassName",)),
    ("a bad node name", {"nodeName": "A"}, ("nodeName",)),
    ("a bad host name", {"hostname": "a.b"}, ("hostname",)),
    ("an alias of no address", {"hostAliases": [{"ip": "here", "hostnames": ["a"]}]}, ("hostAliases[0].ip",)),
    ("an alias with a bad name", {"hostAliases": [{"ip": "1.1.1.1", "hostnames": ["A"]}]}, ("hostAliases[0].hostnames[0]",)),
    ("a bad readiness gate", {"readinessGates": [{"conditionType": "a b"}]}, ("readinessGates[0].conditionType",)),
    ("a group too high", {"securityContext": {"fsGroup": -1}}, ("securityContext.fsGroup",)),
    ("a bad sysctl", {"securityContext": {"sysctls": [{"name": "A", "value": "1"}]}}, ("securityContext.sysctls[0].name",)),
    ("sysctls of one name", {"securityContext": {"sysctls": [{"name": "a.b", "value": "1"}, {"name": "a.b", "value": "2"}]}}, ("securityContext.sysctls[1].name",)),
    ("own users on the host's network", {"hostUsers": False, "hostNetwork": True}, ("hostNetwork",)),
    ("own users among the host's processes", {"hostUsers": False, "hostPID": True}, ("HostPID",)),
    ("an unknown os", {"os": {"name": "plan9"}}, ("os",)),
    ("an unknown resource of the pod", {"resources": {"limits": {"example.com/gpu": 1}}}, ("resources.limits[example.com/gpu]",)),
)


def _bad_templates() -> Iterable[tuple[str, Object, tuple[str, ...]]]:
    def below(path: str, fields: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(f"{path}.{field}" for field in fields)

    for name, container, fields in _BAD_CONTAINERS:
        yield name, template(container), below(CONTAINER, fields)
    for name, mount, fields in _BAD_MOUNTS:
        mounted = template({"volumeMounts": [mount]}, volumes=[_HOST_PATH])
        yield name, mounted, below(CONTAINER, fields)
    for name, volume, fields in _BAD_VOLUMES:
        made = template(volumes=[{"name": "data"} | volume])
        yield name, made, below(f"{POD_SPEC}.volumes[0]", fields)
    for name, spec, fields in _BAD_POD_SPECS:
        yield name, template(**spec), below(POD_SPEC, fields)
    labels = {"metadata": {"labels": {"app": "agent", "a b": "c"}}}
    yield "a bad label on the pod", template() | labels, ("spec.template.labels",)
    notes = {"metadata": {"labels": {"app": "agent"}, "annotations": {"a b": "c"}}}
    yield "a bad annotation on the pod", template() | notes, ("spec.template.annotations",)


# --- The native DaemonSet's own fields ---------------------------------------------------------

_GOOD_NATIVE: tuple[tuple[str, Object], ...] = (
    ("nothing but the necessary", {}),
    ("on delete", {"updateStrategy": {"type": "OnDelete"}}),
    ("a surge instead", rolling(maxSurge="30%", maxUnavailable=0)),
    ("some unavailable", rolling(maxUnavailable="10%")),
    ("no history", {"revisionHistoryLimit": 0}),
    ("nulls", {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": None}}),
)
_BAD_NATIVE: Table = (
    ("no selector", {"selector": None}, ("spec.template.metadata.labels",)),
    ("an empty selector", {"selector": {}}, ("spec.selector",)),
    ("a selector of other pods", {"selector": {"matchLabels": {"app": "other"}}}, ("spec.template.metadata.labels",)),
    ("an unknown operator", {"selector": {"matchExpressions": [requirement("Near", "a")]}}, ("spec.selector.matchExpressions[0].operator",)),
    ("a bad label value", {"selector": {"matchLabels": {"app": "a b"}}}, ("spec.selector.matchLabels",)),
    ("an unknown strategy", {"updateStrategy": {"type": "Ondelete"}}, ("spec.updateStrategy",)),
    ("a negative wait", {"minReadySeconds": -1}, ("spec.minReadySeconds",)),
    ("a negative history", {"revisionHistoryLimit": -1}, ("spec.revisionHistoryLimit",)),
    ("a surge alone", rolling(maxSurge=1), (f"{ROLLING}.maxSurge",)),
    ("both amounts zero", rolling(maxUnavailable=0), (f"{ROLLING}.maxUnavailable",)),
    ("negative unavailable", rolling(maxUnavailable=-1), (f"{ROLLING}.maxUnavailable",)),
    ("more than all unavailable", rolling(maxUnavailable="101%"), (f"{ROLLING}.maxUnavailable",)),
    ("unavailable in words", rolling(maxUnavailable="abc"), (f"{ROLLING}.maxUnavailable", f"{ROLLING}.maxUnavailable")),
    ("a pod that ends", {"template": template(restartPolicy="Never")}, (f"{POD_SPEC}.restartPolicy",)),
    ("a pod with a deadline", {"template": template(activeDeadlineSeconds=5)}, (f"{POD_SPEC}.activeDeadlineSeconds",)),
    ("an unknown end", {"template": template(restartPolicy="Maybe")}, (f"{POD_SPEC}.restartPolicy",) * 2),
    ("an unknown strategy with limits", {"updateStrategy": {"type": "Some", "rollingUpdate": {"maxUnavailable": "5%"}}}, ("spec.updateStrategy",)),
    ("an expression without values", {"selector": {"matchLabels": {"app": "agent"}, "matchExpressions": [requirement("In"), requirement("Exists", "a")]}}, ("spec.selector.matchExpressions[0].values", "spec.selector.matchExpressions[1].values")),
    ("containers of one name", {"template": template(containers=_TWINS)}, (f"{POD_SPEC}.containers[1].name",)),
    ("volumes of one name", {"template": template(volumes=[{"name": "a"}, {"name": "a"}])}, (f"{POD_SPEC}.volumes[1].name",)),
)
_UNDECODABLE: Table = (
    ("a wait in words", {"minReadySeconds": "30s"}, ("spec.minReadySeconds",)),
    ("an image that is a number", {"template": template({"image": 5})}, (f"{CONTAINER}.image",)),
    ("a quantity in words", {"template": template({"resources": {"limits": {"cpu": "lots"}}})}, (f"{CONTAINER}.resources.limits.cpu",)),
    ("containers that are a map", {"template": template(containers={"a": 1})}, (f"{POD_SPEC}.containers",)),
    ("affinity that is a list", {"template": template(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"nodeSelectorTerms": {}}]}})}, (f"{POD_SPEC}.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution",)),
)


# --- Pods --------------------------------------------------------------------------------------

VALID_PODS: tuple[Case, ...] = (
    Case("a plain pod", pod()),
    Case("a pod on the host's network", pod({"ports": [{"containerPort": 80}]}, hostNetwork=True)),
    Case("a pod that ends", pod(restartPolicy="Never", activeDeadlineSeconds=5)),
    Case("a pod bound to a node", pod(nodeName="node-1")),
    Case("limits", pod({"resources": {"limits": {"cpu": "0.5", "memory": "1024Mi"}, "requests": {"cpu": "0.1"}}})),
    Case("limits of the pod", pod({"resources": {"requests": {"cpu": "0.5"}}}, resources={"limits": {"cpu": 2, "memory": "1Gi"}})),
    Case("limits of the pod with sidecars", pod({"resources": {"requests": {"cpu": "0.5"}}}, initContainers=[{"name": "s", "image": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}, {"name": "i", "image": "i", "resources": {"requests": {"cpu": "700m"}}}], resources={"limits": {"cpu": 2}})),
)
INVALID_PODS: tuple[Case, ...] = (
    Case("an image with a space", pod({"image": "agent "}), ("spec.containers[0].image",)),
    Case("a debug container at once", pod(ephemeralContainers=[{"name": "d", "image": "d", "terminationMessagePolicy": "File"}]), ("spec.ephemeralContainers",)),
    Case("a gate and a node", pod(nodeName="a", schedulingGates=[{"name": "b"}]), ("spec.nodeName",)),
    Case("a sysctl of the host's network", pod(hostNetwork=True, securityContext={"sysctls": [{"name": "net.core.somaxconn", "value": "1"}]}), ("spec.securityContext.sysctls[0].name",)),
    Case("a sysctl of the host's memory", pod(hostIPC=True, securityContext={"sysctls": [{"name": "kernel.shmmax", "value": "1"}]}), ("spec.securityContext.sysctls[0].name",)),
    Case("no image", pod({"image": ""}), ("spec.containers[0].image",)),
    Case("an unknown end", pod(restartPolicy="Maybe"), ("spec.restartPolicy",)),
    Case("a deadline of nothing", pod(activeDeadlineSeconds=0), ("spec.activeDeadlineSeconds",)),
)


# fmt: on
# --- All together ------------------------------------------------------------------------------

_ADVANCED = (keys.V1ALPHA1, keys.V1BETA1)

VALID: tuple[Case, ...] = (
    *(
        Case(f"{version}: {name}", daemonset(version, **spec))
        for version in _ADVANCED
        for name, spec in _GOOD_SPECS
    ),
    *(
        Case(f"{keys.APPS_V1}: {name}", daemonset(keys.APPS_V1, **spec))
        for name, spec in _GOOD_NATIVE
    ),
    *(
        Case(f"{version}: {name}", daemonset(version, template=made))
        for version in (keys.APPS_V1, keys.V1BETA1)
        for name, made in _GOOD_TEMPLATES
    ),
)

INVALID: tuple[Case, ...] = (
    *(
        Case(f"{version}: {name}", daemonset(version, **spec), paths)
        for version in _ADVANCED
        for name, spec, paths in _BAD_SPECS
    ),
    *(
        Case(f"{keys.APPS_V1}: {name}", daemonset(keys.APPS_V1, **spec), paths)
        for name, spec, paths in _BAD_NATIVE
    ),
    *(
        Case(f"{keys.APPS_V1}: {name}", daemonset(keys.APPS_V1, **spec), paths, undecodable=True)
        for name, spec, paths in _UNDECODABLE
    ),
    *(
        Case(f"{version}: {name}", daemonset(version, metadata=metadata), paths)
        for version in (keys.APPS_V1, keys.V1BETA1)
        for name, metadata, paths in _BAD_METADATA
    ),
    *(
        Case(
            f"{version}: {name}",
            daemonset(version, template=made),
            paths,
            only_by_us=version != keys.APPS_V1,
        )
        for version in (keys.APPS_V1, keys.V1BETA1)
        for name, made, paths in _bad_templates()
    ),
)
