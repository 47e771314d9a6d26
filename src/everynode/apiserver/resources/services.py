"""Strategy of Services: allocates cluster IPs, at which nothing listens."""

from __future__ import annotations

import ipaddress
from typing import Any, Final

from everynode.api.daemonset import FieldError
from everynode.api.validation.field_errors import invalid, required
from everynode.api.validation.names import dns_label
from everynode.apiserver.resources.strategy import ResourceStrategy, StrategyContext

Object = dict[str, Any]

SERVICE_CIDR: Final = ipaddress.ip_network("10.96.0.0/16")


class ServiceStrategy(ResourceStrategy):
    """Services: get the next free cluster IP unless they name one."""

    status = True
    returns_deleted_object = True
    name_rule = staticmethod(dns_label)

    def default(self, obj: Object) -> Object:
        """Set the defaults of type, ports and policies."""
        spec = {**(obj.get("spec") or {})}
        spec.setdefault("type", "ClusterIP")
        spec.setdefault("sessionAffinity", "None")
        if "ports" in spec:
            spec["ports"] = [_default_port(port) for port in spec["ports"]]
        if spec["type"] != "ExternalName":
            spec.setdefault("internalTrafficPolicy", "Cluster")
        return {**obj, "spec": spec}

    def prepare_create(self, obj: Object, context: StrategyContext) -> None:
        """Start with an empty load balancer status."""
        obj["status"] = {"loadBalancer": {}}

    def admit(self, obj: Object, context: StrategyContext) -> None:
        """Allocate the cluster IP."""
        spec = obj["spec"]
        _default_ip_families(spec)
        if spec["type"] != "ExternalName" and not spec.get("clusterIP"):
            taken = {(s.get("spec") or {}).get("clusterIP") for s in context.all("services")}
            hosts = (str(host) for host in SERVICE_CIDR.hosts())
            spec["clusterIP"] = next(host for host in hosts if host not in taken)
        if spec.get("clusterIP"):
            spec["clusterIPs"] = [spec["clusterIP"]]

    def prepare_update(self, new: Object, old: Object, context: StrategyContext) -> None:
        """Keep the cluster IP if the update omits it."""
        super().prepare_update(new, old, context)
        if new["spec"]["type"] == old["spec"]["type"]:
            for key in ("clusterIP", "clusterIPs"):
                if key in old["spec"]:
                    new["spec"].setdefault(key, old["spec"][key])
        _default_ip_families(new["spec"])

    def validate_create(self, obj: Object, context: StrategyContext) -> list[FieldError]:
        """Check that there are ports, with names if there are several."""
        spec = obj["spec"]
        ports = spec.get("ports") or []
        if not ports and spec["type"] != "ExternalName" and spec.get("clusterIP") != "None":
            return [required("spec.ports")]
        return [
            required(f"spec.ports[{index}].name")
            for index, port in enumerate(ports)
            if len(ports) > 1 and not port.get("name")
        ]

    def validate_update(
        self, new: Object, old: Object, context: StrategyContext
    ) -> list[FieldError]:
        """Check the same, and that the cluster IP stays."""
        before, after = old["spec"].get("clusterIP"), new["spec"].get("clusterIP")
        if before and before != after and new["spec"]["type"] != "ExternalName":
            path, message = "spec.clusterIPs[0]", "may not change once set"
            return [invalid(path, [after or ""], message)]
        return self.validate_create(new, context)


def _default_ip_families(spec: Object) -> None:
    if spec["type"] != "ExternalName":
        # A headless service without a selector may have endpoints of both families.
        both = spec.get("clusterIP") == "None" and not spec.get("selector")
        spec.setdefault("ipFamilies", ["IPv4", "IPv6"] if both else ["IPv4"])
        spec.setdefault("ipFamilyPolicy", "RequireDualStack" if both else "SingleStack")


def _default_port(port: Object) -> Object:
    defaulted = {**port}
    defaulted.setdefault("protocol", "TCP")
    defaulted.setdefault("targetPort", port.get("port", 0))
    return defaulted
