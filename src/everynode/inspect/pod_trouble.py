"""What the API server knows of a pod's trouble: how its containers ended, and its events."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from everynode.api.times import seconds
from everynode.errors import one_line
from everynode.kube import verbs
from everynode.kube.client import Client
from everynode.kube.errors import Forbidden, NotFound
from everynode.kube.permissions import missing_permission
from everynode.kube.resources import EVENTS, PODS

_MAX_EVENTS: Final = 5


class _Ended(msgspec.Struct, rename="camel"):
    exit_code: int = 0
    reason: str = ""
    message: str = ""


class _Waiting(msgspec.Struct):
    reason: str = ""
    message: str = ""


class _State(msgspec.Struct):
    waiting: _Waiting | None = None
    terminated: _Ended | None = None


class _Container(msgspec.Struct, rename="camel"):
    name: str = ""
    state: _State = msgspec.field(default_factory=_State)
    last_state: _State = msgspec.field(default_factory=_State)


class _PodStatus(msgspec.Struct, rename="camel"):
    message: str = ""
    init_container_statuses: list[_Container] = []
    container_statuses: list[_Container] = []


class _Pod(msgspec.Struct):
    status: _PodStatus = msgspec.field(default_factory=_PodStatus)


class _Event(msgspec.Struct, rename="camel"):
    type: str = ""
    reason: str = ""
    message: str = ""
    count: int | None = None
    last_timestamp: datetime | None = None
    event_time: datetime | None = None


class PodEvent(msgspec.Struct, frozen=True):
    """One event about a pod or a DaemonSet."""

    type: str
    reason: str
    message: str
    count: int
    last: float | None


_decode_pod: Final = msgspec.json.Decoder(_Pod).decode
_decode_event: Final = msgspec.json.Decoder(_Event).decode


async def read_errors(client: Client, namespace: str, pod: str) -> list[str]:
    """Return how the containers of a pod ended or why they do not start."""
    try:
        found = await client.read(verbs.get(PODS, pod, namespace=namespace), _decode_pod)
    except NotFound:
        return []
    except Forbidden as error:
        return [f"not known: you lack the permission to {missing_permission(error)}"]
    status = found.status
    lines = [one_line(status.message)] if status.message else []
    for container in (*status.init_container_statuses, *status.container_statuses):
        lines += _errors_of(container)
    return lines


def _errors_of(container: _Container) -> list[str]:
    lines = []
    waiting = container.state.waiting
    if waiting is not None and waiting.reason not in ("", "ContainerCreating", "PodInitializing"):
        text = one_line(waiting.message) or "no message"
        lines.append(f"container {container.name}: {waiting.reason}: {text}")
    ended = container.state.terminated or container.last_state.terminated
    if ended is not None and (ended.exit_code or ended.reason != "Completed"):
        message = f": {one_line(ended.message)}" if ended.message else ""
        lines.append(
            f"container {container.name} ended with exit code {ended.exit_code}"
            f"{f' ({ended.reason})' if ended.reason else ''}{message}"
        )
    return lines


async def read_events(
    client: Client, namespace: str, uid: str, *, warnings_only: bool = False
) -> list[PodEvent] | str:
    """Return the last events about an object, newest first; or the right that is missing."""
    chosen = f"involvedObject.uid={uid}{',type=Warning' if warnings_only else ''}"
    options = verbs.ListOptions(namespace=namespace, fields=chosen)
    try:
        found = await client.read_all(EVENTS, _decode_event, options=options)
    except Forbidden as error:
        return missing_permission(error)
    events = [
        PodEvent(
            each.type,
            each.reason,
            one_line(each.message),
            each.count or 1,
            seconds(each.last_timestamp or each.event_time),
        )
        for each in found
    ]
    return sorted(events, key=lambda each: -(each.last or 0.0))[:_MAX_EVENTS]
