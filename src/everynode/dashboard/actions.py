"""Actions: what the page may change, shown before it is written.

The edits and their write are those of the commands. A change is made twice from the object as it is
stored: once for the confirmation, which lets the API server try it, and once to write it. Unless
both are the same, nothing is written.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from everynode.api.daemonset import DaemonSet, Flavour
from everynode.api.decode import DecodeError
from everynode.api.versions import decode_daemonset
from everynode.change.edits import Edit, parse_partition, set_partition, set_paused
from everynode.change.revisions import edit_to_revision
from everynode.change.write import decode_object, full_patch, write_edit
from everynode.clock import Clock
from everynode.controller.informers import resource_of
from everynode.dashboard.access import bearer
from everynode.dashboard.guard import Refusal
from everynode.errors import UserError
from everynode.inspect.templates import as_yaml, diff_of_texts
from everynode.kube import verbs
from everynode.kube.client import Client

Object = dict[str, Any]
_MAX_DIGITS: Final = 9
_WHERE_THE_TOKEN_IS: Final = "it was printed when the dashboard was started with --allow-actions"


class RequestedChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a viewer wants to change; `confirmed` is the digest of the change they were shown."""

    action: Literal["pause", "resume", "partition", "undo"]
    argument: str = ""
    confirmed: str = ""


def parse(body: bytes) -> RequestedChange:
    """Return what a request asks for; raises Refusal."""
    try:
        return msgspec.json.decode(body, type=RequestedChange)
    except msgspec.MsgspecError as error:
        raise Refusal(
            400, f"this is not an action: {error}", "use the dashboard's own page"
        ) from None


class Actions:
    """Changes of sets, for those who have the token of this process."""

    def __init__(self, client: Client, clock: Clock, token: str) -> None:
        self._client = client
        self._clock = clock
        self._token = token.encode()

    def check(self, headers: Mapping[str, str]) -> None:
        """Raise Refusal unless a request carries the token."""
        given = bearer(headers).encode()
        if not given:
            raise Refusal(401, "an action needs the token", _WHERE_THE_TOKEN_IS)
        if not hmac.compare_digest(given, self._token):
            raise Refusal(401, "the token is not that of this dashboard", _WHERE_THE_TOKEN_IS)

    async def preview(
        self, flavour: Flavour, namespace: str, name: str, requested: RequestedChange
    ) -> Object:
        """Return what would change, as the API server answers to a dry run; raises Refusal."""
        change = _Change(self._client, self._clock, flavour, namespace, name, requested)
        stored, edit = await change.make()
        after = await change.write(stored, edit, dry_run=True)
        lines = diff_of_texts(_text(stored), _text(after), "now", "then")
        return {
            "done": edit.done,
            "warning": edit.warning,
            "changes": bool(edit.patch),
            "diff": "\n".join(lines),
            "digest": change.digest(stored, edit),
            "command": change.command,
        }

    async def apply(
        self, flavour: Flavour, namespace: str, name: str, requested: RequestedChange
    ) -> Object:
        """Write a change that was confirmed; raises Refusal if it is not that change any more."""
        change = _Change(self._client, self._clock, flavour, namespace, name, requested)
        stored, edit = await change.make()
        change.confirm(stored, edit)
        await change.write(stored, edit)
        return {"done": edit.done}


class _Change:
    """One change of one set."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        flavour: Flavour,
        namespace: str,
        name: str,
        requested: RequestedChange,
    ) -> None:
        self._client = client
        self._clock = clock
        self._flavour = flavour
        self._namespace = namespace
        self._name = name
        self._requested = requested

    @property
    def command(self) -> str:
        """The command that does the same."""
        where = "" if self._namespace == "default" else f" -n {self._namespace}"
        return f"{self._cause}{where}"

    @property
    def _cause(self) -> str:
        requested = self._requested
        typed = (
            f"--to-revision {requested.argument}"
            if requested.action == "undo"
            else requested.argument
        )
        more = typed if requested.argument else ""
        return f"everynode {requested.action} {self._flavour.short}/{self._name} {more}".rstrip()

    async def make(self) -> tuple[Object, Edit]:
        """Return the object as it is stored, and the edit; raises Refusal."""
        resource = resource_of(self._flavour)
        request = verbs.get(resource, self._name, namespace=self._namespace)
        raw = await self._client.read(request, bytes, attempts=2)
        try:
            ds = decode_daemonset(raw, flavour=self._flavour)
            stored = decode_object(raw)
            return stored, await self._edit(ds, stored)
        except (DecodeError, UserError) as error:
            raise Refusal(409, str(error), "nothing was changed") from None

    async def _edit(self, ds: DaemonSet, stored: Object) -> Edit:
        action, argument = self._requested.action, self._requested.argument
        if action in ("pause", "resume"):
            return set_paused(stored, paused=action == "pause")
        if action == "partition":
            return set_partition(stored, parse_partition(argument))
        if argument and not (argument.isdecimal() and len(argument) <= _MAX_DIGITS):
            raise UserError(f"{argument!r} is not the number of a revision")
        number = int(argument) if argument else None
        return await edit_to_revision(self._client, ds, stored, number, self._clock.now())

    def digest(self, stored: Object, edit: Edit) -> str:
        """Return a digest of the change and of what it changes: both were shown."""
        content = [stored["metadata"]["uid"], _text(stored), full_patch(edit, self._cause)]
        return hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()

    def confirm(self, stored: Object, edit: Edit) -> None:
        """Raise Refusal unless this is the change that was confirmed."""
        given = self._requested.confirmed.encode()
        if not hmac.compare_digest(given, self.digest(stored, edit).encode()):
            raise Refusal(409, "this is not the change that was shown", "look at it again")

    async def write(self, stored: Object, edit: Edit, *, dry_run: bool = False) -> Object:
        """Write the edit, or let the API server only try it."""

        async def remake() -> tuple[Object, Edit]:
            latest, again = await self.make()
            if not dry_run:
                self.confirm(latest, again)
            return latest, again

        try:
            return await write_edit(
                self._client,
                resource_of(self._flavour),
                stored,
                edit,
                command=self._cause,
                remake=remake,
                dry_run=dry_run,
            )
        except UserError as error:
            raise Refusal(409, str(error), "nothing was changed") from None


def _text(obj: Object) -> str:
    """Return the part of an object that users write: its annotations and its spec."""
    annotations = obj["metadata"].get("annotations") or {}
    return as_yaml({"metadata": {"annotations": annotations}, "spec": obj["spec"]})
