"""Running a migration: read what there is, do the next step, until the pods are adopted."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Final

import click
import msgspec

from everynode.api.daemonset import Flavour
from everynode.api.keys import CLI_FIELD_MANAGER
from everynode.api.objects import ControllerRevision
from everynode.api.versions import decode_daemonset
from everynode.cli.access.cluster import Cluster
from everynode.cli.access.daemonset_names import RESOURCES, no_crd_error
from everynode.cli.access.prerequisites import join_verbs
from everynode.cli.migration.plan import (
    KIND_TEXT,
    OTHER,
    MigrationRecord,
    MigrationState,
    MigrationStep,
    Object,
    check_meaning,
    convert_source,
    is_observed,
    make_record,
    next_step,
    owned_pods,
    record_name,
    revision_for_pods,
)
from everynode.cli.migration.probe import WAIT_TIMEOUT, ControllerProbe, wait_until
from everynode.cli.terminal.text import format_count
from everynode.controller.requests import selected_by
from everynode.errors import UserError
from everynode.kube import verbs
from everynode.kube.client import decode_page
from everynode.kube.errors import (
    AlreadyExists,
    Conflict,
    Denied,
    Forbidden,
    Invalid,
    NotFound,
    NotServed,
)
from everynode.kube.permissions import Permission, is_allowed, missing_permissions
from everynode.kube.requests import METADATA_LIST, Request
from everynode.kube.resources import PODS, REVISIONS, Resource
from everynode.kube.verbs import ListOptions

_CONFIG_MAPS: Final = Resource("", "v1", "configmaps", "ConfigMap")
_KEY: Final = "migration.json"  # in the ConfigMap

_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode
_decode_revision: Final = msgspec.json.Decoder(ControllerRevision).decode
_decode_record: Final = msgspec.json.Decoder(MigrationRecord).decode


class Migration:
    """The migration of one DaemonSet to the other kind."""

    def __init__(
        self,
        cluster: Cluster,
        name: str,
        flavour: Flavour,
        *,
        drop: bool = False,
    ) -> None:
        self._client = cluster.client
        self._clock = cluster.clock
        self._namespace = cluster.namespace
        self._name = name
        self._flavour = flavour
        self._drop = drop

    @property
    def _source(self) -> Resource:
        return RESOURCES[self._flavour]

    @property
    def _target(self) -> Resource:
        return RESOURCES[OTHER[self._flavour]]

    async def check(self) -> None:
        """Check everything that needs no change, and print what would be done."""
        state = await self._read()
        step = next_step(state)
        if step is not MigrationStep.STORE_RECORD:
            click.echo(f"{state.source_name} is being migrated; next: {step} (dry run)")
            return
        record = await self._prepare(state)
        pods = format_count(len(record.pods), "pod")
        click.echo(f"{state.source_name} can become {state.target_name}, with its {pods} (dry run)")

    async def run(self) -> None:
        """Migrate, from wherever an earlier run was interrupted; raises UserError."""
        while True:
            state = await self._read()
            match next_step(state):
                case MigrationStep.STORE_RECORD:
                    record = await self._prepare(state)
                    await self._try_target_kind(record.manifest)
                    await self._store(record, again=state.record is not None)
                case MigrationStep.DELETE_SOURCE:
                    await self._delete_source(state)
                case MigrationStep.AWAIT_DELETION:
                    await self._await_deletion(state)
                case MigrationStep.CREATE_TARGET:
                    await self._create_target(state)
                case MigrationStep.AWAIT_ADOPTION:
                    await self._finish(state)
                    return

    async def _read(self) -> MigrationState:
        source, target, config_map = await asyncio.gather(
            self._get(self._source, self._name),
            self._get(self._target, self._name),
            self._get(_CONFIG_MAPS, record_name(self._name, self._flavour)),
        )
        record = None
        if config_map is not None:
            try:
                record = _decode_record(str((config_map.get("data") or {}).get(_KEY)))
            except msgspec.DecodeError:
                where = f"configmap/{record_name(self._name, self._flavour)}"
                raise UserError(f"{where} is not the record of a migration; delete it") from None
        return MigrationState(
            name=self._name, flavour=self._flavour, source=source, target=target, record=record
        )

    async def _get(self, resource: Resource, name: str) -> Object | None:
        try:
            return await self._client.read(
                verbs.get(resource, name, namespace=self._namespace), _decode
            )
        except NotServed:
            raise no_crd_error() from None
        except NotFound:
            return None

    # --- Before ----------------------------------------------------------------------------------

    async def _prepare(self, state: MigrationState) -> MigrationRecord:
        """Check that the migration can succeed; changes nothing."""
        manifest, lost = convert_source(state, drop=self._drop)
        await self._check_permissions()
        # An earlier owner of the finalizers would find them on an object that it does not know.
        manifest["metadata"].pop("finalizers", None)
        request = self._create_request(self._target, manifest, dry_run=True)
        stored = await self._client.write(request, _decode)
        check_meaning(state, stored)
        try:
            await self._probe(self._target, manifest).try_pod()
        except (Denied, Forbidden, Invalid) as error:
            raise UserError(
                "the API server refuses the pod that shows how far the controller has come: "
                f"{error.message}; nothing was changed"
            ) from None
        assert state.source is not None
        found = await self._pods(state.source)
        pods = owned_pods(found, state.source["metadata"]["uid"])
        revision = None
        if self._flavour is Flavour.ADVANCED:
            own = [each for each in found if each["uid"] in pods]
            revision = revision_for_pods(stored, own, await self._revisions(state.source))
        for each in lost:
            click.echo(f"dropped {each.path} of {self._name}: {each.instead}", err=True)
        return make_record(state, manifest, sorted(pods), revision)

    async def _check_permissions(self) -> None:
        wanted = [
            Permission(verb=verb, group=group, resource=resource, namespace=self._namespace)
            for verb, group, resource in (
                ("delete", self._source.group, "daemonsets"),
                ("create", self._target.group, "daemonsets"),
                ("delete", self._target.group, "daemonsets"),
                ("create", "", "configmaps"),
                ("patch", "", "configmaps"),
                ("delete", "", "configmaps"),
                ("list", "", "pods"),
                ("patch", self._target.group, "daemonsets"),
                ("list", "apps", "controllerrevisions"),
                ("create", "apps", "controllerrevisions"),
                ("delete", "apps", "controllerrevisions"),
                ("create", "", "pods"),
                ("delete", "", "pods"),
            )
        ]
        try:
            allowed = await asyncio.gather(*(is_allowed(self._client, each) for each in wanted))
        except (NotServed, Forbidden):
            return  # no permission to ask
        missing = [each for each, given in zip(wanted, allowed, strict=True) if not given]
        if missing:
            raise missing_permissions(join_verbs(missing))

    def _probe(self, resource: Resource, manifest: Object) -> ControllerProbe:
        return ControllerProbe(
            self._client, self._clock, resource, namespace=self._namespace, manifest=manifest
        )

    async def _try_target_kind(self, manifest: Object) -> None:
        """See whether a controller serves the kind, before a DaemonSet is given to it."""
        if not await self._probe(self._target, manifest).controller_answers():
            kind = KIND_TEXT[OTHER[self._flavour]]
            raise UserError(
                f"no controller serves {kind} DaemonSets in namespace {self._namespace}: start one "
                "first, `everynode doctor` says what is missing; nothing was changed"
            )

    async def _store(self, record: MigrationRecord, *, again: bool) -> None:
        name = record_name(self._name, self._flavour)
        data = {"data": {_KEY: msgspec.json.encode(record).decode()}}
        if again:
            request = verbs.patch(
                _CONFIG_MAPS, name, data, namespace=self._namespace, manager=CLI_FIELD_MANAGER
            )
        else:
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **data}
            request = self._create_request(_CONFIG_MAPS, body)
        await self._client.write(request, bytes)

    # --- The change ------------------------------------------------------------------------------

    async def _delete_source(self, state: MigrationState) -> None:
        assert state.source is not None
        metadata = state.source["metadata"]
        request = verbs.delete(
            self._source,
            self._name,
            namespace=self._namespace,
            uid=metadata["uid"],
            version=metadata["resourceVersion"],  # the spec is the one that was converted
            propagation="Orphan",
        )
        try:
            await self._client.write(request, bytes)
        except (Conflict, NotFound):
            return  # look again
        click.echo(f"{state.source_name} deleted, its pods stay")

    async def _await_deletion(self, state: MigrationState) -> None:
        async def gone() -> bool:
            return await self._get(self._source, self._name) is None

        notice = f"waiting until {state.source_name} is gone: something else has its finalizers"
        if not await wait_until(gone, self._clock, notice):
            raise UserError(
                f"{state.source_name} is not gone after {WAIT_TIMEOUT:.0f} seconds: look at its "
                "finalizers, then run this command again to go on"
            )

    async def _create_target(self, state: MigrationState) -> None:
        assert state.record is not None
        await self._await_controllers(state, state.record)
        try:
            request = self._create_request(self._target, state.record.manifest)
            await self._client.write(request, bytes)
        except AlreadyExists:
            return  # look again
        click.echo(f"{state.target_name} created")

    async def _await_controllers(self, state: MigrationState, record: MigrationRecord) -> None:
        """Wait until no controller can create a pod beside one that is to be adopted."""
        # A controller that does not answer has stopped; when it starts, it reads all anew.
        await self._probe(self._source, record.manifest).controller_answers()

        async def released() -> bool:
            return not owned_pods(await self._pods(record.manifest), record.source_uid)

        notice = f"waiting for the garbage collector to release the pods of {state.source_name}"
        if not await wait_until(released, self._clock, notice):
            raise UserError(
                f"pods still name {state.source_name} as their owner after "
                f"{WAIT_TIMEOUT:.0f} seconds: see whether kube-controller-manager runs, "
                "then run this command again to go on"
            )
        if record.revision is not None:
            with suppress(AlreadyExists):  # of a run that was interrupted
                await self._client.write(self._create_request(REVISIONS, record.revision), bytes)
        if not await self._probe(self._target, record.manifest).controller_sees_pods():
            raise UserError(
                f"the controller of {KIND_TEXT[OTHER[self._flavour]]} DaemonSets has not answered "
                f"for {WAIT_TIMEOUT:.0f} seconds: see whether it runs, then run this command again "
                "to go on"
            )

    # --- After -----------------------------------------------------------------------------------

    async def _finish(self, state: MigrationState) -> None:
        """Wait for the adoption, compare the pods, and delete the record."""
        assert state.record is not None
        before, kept = set(state.record.pods), set[str]()

        async def adopted() -> bool:
            live = await self._get(self._target, self._name)
            if live is None:
                raise UserError(f"{state.target_name} was deleted meanwhile; run this again")
            pods = await self._pods(live)
            kept.clear()
            kept.update(before & owned_pods(pods, live["metadata"]["uid"]))
            waiting = (before & {pod["uid"] for pod in pods}) - kept
            return is_observed(live) and not waiting

        if not await wait_until(adopted, self._clock):
            raise UserError(
                f"{state.target_name} has adopted {len(kept)} of {len(before)} pods after "
                f"{WAIT_TIMEOUT:.0f} seconds; run this command again to go on waiting"
            )
        await self._delete(_CONFIG_MAPS, record_name(self._name, self._flavour))
        if kept != before:
            raise UserError(
                f"{state.target_name} is there, but {len(before - kept)} of its "
                f"{format_count(len(before), 'pod')} were deleted meanwhile"
            )
        click.echo(f"{state.target_name} has adopted the same {format_count(len(kept), 'pod')}")

    async def _pods(self, daemonset: Object) -> list[Object]:
        """Read the metadata of all pods that the selector matches."""
        options = self._selector_options(daemonset)
        found: list[Object] = []
        token = ""
        while True:
            request = verbs.list_page(PODS, options=options, token=token)
            asked = msgspec.structs.replace(request, accept=METADATA_LIST)
            page = await self._client.read(asked, decode_page)
            found += [_decode(bytes(item))["metadata"] for item in page.items]
            token = page.token
            if not token:
                return found

    async def _revisions(self, daemonset: Object) -> list[ControllerRevision]:
        options = self._selector_options(daemonset)
        return await self._client.read_all(REVISIONS, _decode_revision, options=options)

    def _selector_options(self, daemonset: Object) -> ListOptions:
        """What the selector matches, in the namespace."""
        flavour = self._flavour if _is(daemonset, self._source) else OTHER[self._flavour]
        ds = decode_daemonset(msgspec.json.encode(daemonset), flavour=flavour)
        ds = msgspec.structs.replace(
            ds, metadata=msgspec.structs.replace(ds.metadata, namespace=self._namespace)
        )
        options = selected_by(ds)
        if options is None:
            raise UserError(f"the selector of {self._name} matches nothing")
        return options

    async def _delete(self, resource: Resource, name: str) -> None:
        request = verbs.delete(resource, name, namespace=self._namespace, propagation="Background")
        with suppress(NotFound):  # a run that was interrupted has done it
            await self._client.write(request, bytes)

    def _create_request(
        self, resource: Resource, body: Object, *, dry_run: bool = False
    ) -> Request:
        return verbs.create(
            resource, body, namespace=self._namespace, manager=CLI_FIELD_MANAGER, dry_run=dry_run
        )


def _is(daemonset: Object, resource: Resource) -> bool:
    return bool(daemonset["apiVersion"] == resource.api_version)
