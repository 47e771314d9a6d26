"""Strategy of Namespaces: deleted only after their contents."""

from __future__ import annotations

from typing import Any, Final

from everynode.api.validation.names import dns_label
from everynode.apiserver.resources.strategy import ResourceStrategy, StrategyContext

Object = dict[str, Any]

NAME_LABEL: Final = "kubernetes.io/metadata.name"
_UNDELETABLE: Final = ("default", "kube-system", "kube-public")


class NamespaceStrategy(ResourceStrategy):
    """Namespaces: spec.finalizers holds the deletion until the contents are gone."""

    status = True
    returns_deleted_object = True
    fields = ("status.phase",)
    name_rule = staticmethod(dns_label)

    def selectable(self, obj: Object) -> tuple[str, ...]:
        """Return the phase."""
        return ((obj.get("status") or {}).get("phase", ""),)

    def default(self, obj: Object) -> Object:
        """Label every namespace with its name."""
        meta = obj["metadata"]
        if meta.get("name"):
            meta["labels"] = {**(meta.get("labels") or {}), NAME_LABEL: meta["name"]}
        return obj

    def prepare_create(self, obj: Object, context: StrategyContext) -> None:
        """Start with phase Active."""
        obj["status"] = {"phase": "Active"}

    def admit(self, obj: Object, context: StrategyContext) -> None:
        """Add the finalizer of the namespace controller."""
        spec = obj.get("spec") or {}
        finalizers = spec.get("finalizers") or []
        obj["spec"] = {**spec, "finalizers": list(dict.fromkeys([*finalizers, "kubernetes"]))}

    def created_with(self, obj: Object, context: StrategyContext) -> list[tuple[str, str, Object]]:
        """Create the default service account and the root CA certificate for pods."""
        name = obj["metadata"]["name"]
        contents: list[tuple[str, str, Object]] = [
            ("serviceaccounts", name, {"metadata": {"name": "default"}})
        ]
        if context.authority:
            contents.append(("configmaps", name, _root_certificate(context.authority)))
        return contents

    def deletion_forbidden(self, obj: Object) -> str:
        """Protect the system namespaces."""
        return (
            "this namespace may not be deleted" if obj["metadata"]["name"] in _UNDELETABLE else ""
        )

    def prepare_update(self, new: Object, old: Object, context: StrategyContext) -> None:
        """Restore spec.finalizers, which change at the finalize subresource only."""
        super().prepare_update(new, old, context)
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
