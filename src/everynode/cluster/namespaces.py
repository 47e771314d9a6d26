"""What is special about namespaces: they end only when their content has."""

from __future__ import annotations

from typing import Any, Final

from everynode.api.validation.names import dns_label
from everynode.cluster.rules import Rules, World

Object = dict[str, Any]

NAME_LABEL: Final = "kubernetes.io/metadata.name"
_IMMORTAL: Final = ("default", "kube-system", "kube-public")


class NamespaceRules(Rules):
    """A namespace has a finalizer of its own, in its spec."""

    status = True
    returns_deleted = True
    fields = ("status.phase",)
    name_rule = staticmethod(dns_label)

    def selectable(self, obj: Object) -> tuple[str, ...]:
        """Whether the namespace is on its way out."""
        return ((obj.get("status") or {}).get("phase", ""),)

    def default(self, obj: Object) -> Object:
        """Every namespace is labelled with its name."""
        meta = obj["metadata"]
        if meta.get("name"):
            meta["labels"] = {**(meta.get("labels") or {}), NAME_LABEL: meta["name"]}
        return obj

    def prepare_create(self, obj: Object, world: World) -> None:
        """It starts active."""
        obj["status"] = {"phase": "Active"}

    def admit(self, obj: Object, world: World) -> None:
        """Its content is to be seen off before it goes."""
        spec = obj.get("spec") or {}
        finalizers = spec.get("finalizers") or []
        obj["spec"] = {**spec, "finalizers": list(dict.fromkeys([*finalizers, "kubernetes"]))}

    def companions(self, obj: Object, world: World) -> list[tuple[str, str, Object]]:
        """Pods of the namespace need an account to run under and a certificate to trust."""
        name = obj["metadata"]["name"]
        made: list[tuple[str, str, Object]] = [
            ("serviceaccounts", name, {"metadata": {"name": "default"}})
        ]
        if world.authority:
            made.append(("configmaps", name, _root_certificate(world.authority)))
        return made

    def undeletable(self, obj: Object) -> str:
        """A cluster needs some of its namespaces."""
        return "this namespace may not be deleted" if obj["metadata"]["name"] in _IMMORTAL else ""

    def prepare_update(self, new: Object, old: Object, world: World) -> None:
        """Finalizers in the spec change only through their own door."""
        super().prepare_update(new, old, world)
        spec = {**(new.get("spec") or {})}
        spec["finalizers"] = (old.get("spec") or {}).get("finalizers", [])
        new["spec"] = spec


def _root_certificate(authority: str) -> Object:
    about = "Holds the certificate by which pods recognise the API server."
    return {
        "metadata": {
            "name": "kube-root-ca.crt",
            "annotations": {"kubernetes.io/description": about},
        },
        "data": {"ca.crt": authority},
    }
