"""Reader: collects the facts about a cluster; writes nothing, and names the rights it lacks."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from everynode.api.crd import CRD_NAME
from everynode.api.keys import FIELD_MANAGER
from everynode.cli.access.connection import server_version
from everynode.cli.access.prerequisites import Prerequisites, controller_permissions
from everynode.cli.checkup.facts import (
    KRUISE_CONTROLLER,
    Facts,
    Object,
    Objects,
    StatusManager,
    status_writer,
)
from everynode.controller.run import ControllerOptions
from everynode.install.apply import RESOURCES
from everynode.install.flow_schemas import flow_schemas
from everynode.install.rbac import LEASE
from everynode.kube import verbs
from everynode.kube.client import Client, decode_page
from everynode.kube.errors import Forbidden, NotFound, NotServed
from everynode.kube.permissions import Permission, ServiceAccount, is_allowed, missing_permission
from everynode.kube.requests import METADATA_LIST, Request
from everynode.kube.resources import ADVANCED, CRDS, DAEMONSETS, LEASES, Resource

_ADMISSION: Final = "admissionregistration.k8s.io"
_WEBHOOKS: Final = tuple(
    Resource(_ADMISSION, "v1", f"{kind.lower()}s", kind, namespaced=False)
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
)
_DEPLOYMENTS: Final = RESOURCES["Deployment"]
_FLOW_SCHEMAS: Final = RESOURCES["FlowSchema"]
_NAME: Final = "everynode"  # of the Deployment and of the service account
_KRUISE_SERVICE: Final = "kruise-webhook-service"
# What the commands that look at rollouts read.
_LOOKING: Final = (
    *(("get", group, "daemonsets") for group in (ADVANCED.group, DAEMONSETS.group)),
    *(("list", group, "daemonsets") for group in (ADVANCED.group, DAEMONSETS.group)),
    ("list", "apps", "controllerrevisions"),
    ("list", "", "pods"),
    ("list", "", "nodes"),
)

_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


class FactReader:
    """Reads the facts with the rights of the user."""

    def __init__(self, client: Client, *, namespace: str, native: bool) -> None:
        self._client = client
        self._namespace = namespace  # of the controller
        self._native = native
        self._not_checked: dict[str, None] = {}

    async def read(self) -> Facts:
        """Return the facts; raises KubeError if the server cannot be reached."""
        version = await server_version(self._client)
        controller = await self._get(_DEPLOYMENTS, _NAME, self._namespace)
        native = self._native or any(map(_serves_native, controller or ()))
        return Facts(
            version=version,
            namespace=self._namespace,
            native=native,
            crd=await self._get(CRDS, CRD_NAME),
            controller=controller,
            lease=await self._get(LEASES, LEASE, self._namespace),
            flow_schemas=await self._read_flow_schemas() if controller else None,
            kruise_controllers=await self._list(_DEPLOYMENTS, name=KRUISE_CONTROLLER),
            webhooks=await self._read_webhooks(),
            advanced_writers=await self._read_writers(ADVANCED),
            native_writers=await self._read_writers(DAEMONSETS) if native else (),
            missing_for_account=await self._missing_for_account(native) if controller else (),
            missing_for_you=await self._missing_for_you(native, controller),
            not_checked=tuple(self._not_checked),
        )

    async def _get(self, resource: Resource, name: str, namespace: str = "") -> Objects:
        request = verbs.get(resource, name, namespace=namespace)
        try:
            return (await self._client.read(request, _decode),)
        except NotFound:  # the kind may be missing, too
            return ()
        except Forbidden as error:
            self._refused(error)
            return None

    async def _list(self, resource: Resource, *, name: str = "") -> Objects:
        """Read a collection, or the objects of one name in all namespaces."""
        options = verbs.ListOptions(fields=f"metadata.name={name}" if name else "")
        try:
            return tuple(await self._client.read_all(resource, _decode, options=options))
        except NotServed:
            return ()
        except Forbidden as error:
            self._refused(error)
            return None

    async def _read_flow_schemas(self) -> Objects:
        names = [each["metadata"]["name"] for each in flow_schemas(self._namespace)]
        try:
            await self._client.read(verbs.list_page(_FLOW_SCHEMAS, limit=1), bytes)
        except NotServed:
            return None
        except Forbidden as error:
            self._refused(error)
            return None
        found = [await self._get(_FLOW_SCHEMAS, name) for name in names]
        return tuple(each for objects in found for each in objects or ())

    async def _read_webhooks(self) -> Objects:
        found: list[Object] = []
        for resource in _WEBHOOKS:
            listed = await self._list(resource)
            if listed is None:
                return None
            # Objects in a list have no kind.
            found += [{**each, "kind": resource.kind} for each in listed if _is_kruise_hook(each)]
        return tuple(found)

    async def _read_writers(self, resource: Resource) -> tuple[StatusManager, ...] | None:
        """Read the metadata of all DaemonSets of a kind."""
        found: list[StatusManager] = []
        token = ""
        while True:
            request = verbs.list_page(resource, token=token)
            try:
                page = await self._client.read(_metadata_only(request), decode_page)
            except NotServed:
                return ()
            except Forbidden as error:
                self._refused(error)
                return None
            metadata = [_decode(bytes(item)).get("metadata") or {} for item in page.items]
            found += [status_writer(each, FIELD_MANAGER) for each in metadata]
            token = page.token
            if not token:
                return tuple(found)

    async def _missing_for_account(self, native: bool) -> tuple[Permission, ...]:
        wanted = self._controller_permissions(native)
        return await self._missing(wanted, ServiceAccount(self._namespace, _NAME))

    async def _missing_for_you(self, native: bool, controller: Objects) -> tuple[Permission, ...]:
        """Where no controller is installed, it would run with the rights of the person."""
        if controller == ():
            return await self._missing(self._controller_permissions(native))
        looking = [Permission(verb=verb, group=group, resource=r) for verb, group, r in _LOOKING]
        return await self._missing(looking)

    def _controller_permissions(self, native: bool) -> list[Permission]:
        return controller_permissions(
            Prerequisites(
                controller=ControllerOptions(native=native), lease_namespace=self._namespace
            )
        )

    async def _missing(
        self, wanted: Sequence[Permission], account: ServiceAccount | None = None
    ) -> tuple[Permission, ...]:
        try:
            allowed = await asyncio.gather(
                *(is_allowed(self._client, each, account) for each in wanted)
            )
        except NotServed as error:
            self._not_checked[f"the server has no {error.request_info.resource}"] = None
            return ()
        except Forbidden as error:
            self._refused(error)
            return ()
        return tuple(each for each, given in zip(wanted, allowed, strict=True) if not given)

    def _refused(self, error: Forbidden) -> None:
        self._not_checked[f"you lack the permission to {missing_permission(error)}"] = None


def _metadata_only(request: Request) -> Request:
    return msgspec.structs.replace(request, accept=METADATA_LIST)


def _serves_native(deployment: Object) -> bool:
    containers = deployment["spec"]["template"]["spec"]["containers"]
    return any("--native" in (each.get("args") or ()) for each in containers)


def _is_kruise_hook(configuration: Object) -> bool:
    return any(
        (hook.get("clientConfig", {}).get("service") or {}).get("name") == _KRUISE_SERVICE
        for hook in configuration.get("webhooks") or ()
    )
