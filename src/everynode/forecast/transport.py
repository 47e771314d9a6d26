"""Forecast transport: counts the controller's writes, and makes pods fail on chosen nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from everynode.api import keys
from everynode.api.objects import Pod
from everynode.components.annotations import BEHAVIOUR
from everynode.forecast.preinstalled_pods import PreinstalledPods
from everynode.forecast.rollout_tracker import RolloutTracker
from everynode.kube import verbs
from everynode.kube.requests import Request, Response
from everynode.kube.transport import Stream, Transport
from everynode.kube.watch.decode import Decoder

_HASH: Final = keys.REVISION_HASH.encode()
_LIFECYCLE: Final = keys.LIFECYCLE_STATE.encode()
_json: Final = msgspec.json.Decoder(dict[str, Any]).decode
_pod: Final = Decoder(Pod).one


class ForecastTransport:
    """Passes all requests on; pods of the new version get an annotation to fail on failing nodes.

    Before `begin` is called, pods run as soon as they are created. `on_take` is called with the
    node of every pod that is created, deleted or moved to another version.
    """

    def __init__(
        self,
        transport: Transport,
        tracker: RolloutTracker,
        preinstalled: PreinstalledPods,
        *,
        on_take: Callable[[str], None] = lambda node: None,
    ) -> None:
        self.writes: Counter[str] = Counter()  # by what was written
        self.failing: frozenset[str] = frozenset()  # nodes
        self.failure = "probe"  # what fails there: pull, crash or probe
        # nodes whose old pod fails by an annotation, which an update in place is to end
        self.healed: frozenset[str] = frozenset()
        self._on_take = on_take
        self._transport = transport
        self._tracker = tracker
        self._preinstalled = preinstalled
        self._begun = False

    def begin(self) -> None:
        """From now on writes are counted, and pods fail."""
        self._begun = True

    async def send(self, request: Request) -> Response:
        """Send a request; creates of pods before `begin` are preinstalled."""
        if self._begun and verbs.is_write(request):
            if ("dryRun", "All") not in request.query:
                self.writes[_write_kind(request.path)] += 1
                if _takes_pod(request):
                    self._on_take(self._node_of(request))
            request = self._with_failure(request)
        elif request.method == "POST" and request.path.endswith("/pods"):
            return await self._preinstalled.create_running(request)
        return await self._transport.send(request)

    async def open(self, request: Request) -> Stream:
        """Begin a watch."""
        return await self._transport.open(request)

    async def close(self) -> None:
        """Close the transport below."""
        await self._transport.close()

    def _with_failure(self, request: Request) -> Request:
        if not (self.failing or self.healed) or "/pods" not in request.path:
            return request
        if _HASH not in request.body:
            return request
        body = _json(request.body) if request.body[:1] == b"{" else {}
        metadata = body.get("metadata") or {}
        hash = (metadata.get("labels") or {}).get(keys.REVISION_HASH, "")
        failure = self._failure_on(self._node_of(request))
        if not hash or self._tracker.is_old(hash) or not failure:
            return request
        annotations = {**(metadata.get("annotations") or {}), BEHAVIOUR: f"fail={failure}"}
        body["metadata"] = {**metadata, "annotations": annotations}
        return replace(request, body=msgspec.json.encode(body))

    def _failure_on(self, node: str) -> str:
        """What fails in pods of the new version on a node; empty if nothing is said about it."""
        if node in self.failing:
            return self.failure
        return "none" if node in self.healed else ""

    def _node_of(self, request: Request) -> str:
        """The node of the pod that a request creates or patches."""
        if request.method == "POST":
            return _pod(request.body).node
        return self._tracker.node_of(request.path.rpartition("/")[2])


def _takes_pod(request: Request) -> bool:
    """Whether a write creates a pod, takes one, or begins to change it in place."""
    if "/pods" not in request.path:
        return False
    if request.method in ("POST", "DELETE"):
        return True
    return _HASH in request.body or _LIFECYCLE in request.body


def _write_kind(path: str) -> str:
    """The kind of a write: pods, status, events or others."""
    if "/pods" in path:
        return "pods"
    if path.endswith("/status"):
        return "status"
    return "events" if "/events" in path else "others"
