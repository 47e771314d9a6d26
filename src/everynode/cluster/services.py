"""What is special about services: they get an address, though nothing answers there."""

from __future__ import annotations

import ipaddress
from typing import Any, Final

from everynode.api.daemonset import Fault
from everynode.api.validation.faults import invalid, required
from everynode.api.validation.names import dns_label
from everynode.cluster.rules import Rules, World

Object = dict[str, Any]

NETWORK: Final = ipaddress.ip_network("10.96.0.0/16")


class ServiceRules(Rules):
    """A service without a say in the matter gets the next free address."""

    status = True
    returns_deleted = True
    name_rule = staticmethod(dns_label)

    def default(self, obj: Object) -> Object:
        """Fill in type, ports and policies."""
        spec = {**(obj.get("spec") or {})}
        spec.setdefault("type", "ClusterIP")
        spec.setdefault("sessionAffinity", "None")
        if "ports" in spec:
            spec["ports"] = [_port(port) for port in spec["ports"]]
        if spec["type"] != "ExternalName":
            spec.setdefault("internalTrafficPolicy", "Cluster")
        return {**obj, "spec": spec}

    def prepare_create(self, obj: Object, world: World) -> None:
        """Nobody balances anything yet."""
        obj["status"] = {"loadBalancer": {}}

    def admit(self, obj: Object, world: World) -> None:
        """Choose an address."""
        spec = obj["spec"]
        _choose_families(spec)
        if spec["type"] != "ExternalName" and not spec.get("clusterIP"):
            taken = {(s.get("spec") or {}).get("clusterIP") for s in world.all("services")}
            hosts = (str(host) for host in NETWORK.hosts())
            spec["clusterIP"] = next(host for host in hosts if host not in taken)
        if spec.get("clusterIP"):
            spec["clusterIPs"] = [spec["clusterIP"]]

    def prepare_update(self, new: Object, old: Object, world: World) -> None:
        """The address stays when the writer leaves it out."""
        super().prepare_update(new, old, world)
        if new["spec"]["type"] == old["spec"]["type"]:
            for key in ("clusterIP", "clusterIPs"):
                if key in old["spec"]:
                    new["spec"].setdefault(key, old["spec"][key])
        _choose_families(new["spec"])

    def create_faults(self, obj: Object, world: World) -> list[Fault]:
        """There must be ports, with names when there are several."""
        spec = obj["spec"]
        ports = spec.get("ports") or []
        if not ports and spec["type"] != "ExternalName" and spec.get("clusterIP") != "None":
            return [required("spec.ports")]
        return [
            required(f"spec.ports[{index}].name")
            for index, port in enumerate(ports)
            if len(ports) > 1 and not port.get("name")
        ]

    def update_faults(self, new: Object, old: Object, world: World) -> list[Fault]:
        """The same, and an address that was given is kept."""
        before, after = old["spec"].get("clusterIP"), new["spec"].get("clusterIP")
        if before and before != after and new["spec"]["type"] != "ExternalName":
            path, message = "spec.clusterIPs[0]", "may not change once set"
            return [invalid(path, [after or ""], message)]
        return self.create_faults(new, world)


def _choose_families(spec: Object) -> None:
    if spec["type"] != "ExternalName":
        # A headless service without a selector may get addresses of any kind.
        both = spec.get("clusterIP") == "None" and not spec.get("selector")
        spec.setdefault("ipFamilies", ["IPv4", "IPv6"] if both else ["IPv4"])
        spec.setdefault("ipFamilyPolicy", "RequireDualStack" if both else "SingleStack")


def _port(port: Object) -> Object:
    made = {**port}
    made.setdefault("protocol", "TCP")
    made.setdefault("targetPort", port.get("port", 0))
    return made
