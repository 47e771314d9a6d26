"""The controller survives every object and response of a server, and handles all others."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest

from everynode.api.daemonset import Flavour
from everynode.api.decode import DecodeError
from everynode.api.objects import ControllerRevision, Node, Pod
from everynode.api.versions import decode_daemonset
from everynode.controller.run import Controller, ControllerOptions
from everynode.kube.requests import Request, Response
from everynode.kube.watch.decode import Decoder
from tests.fuzz import samples
from tests.fuzz.generate import Generator, Object
from tests.fuzz.runs import EndlessError, RunSummary, bounded, random_of, seeds
from tests.fuzz.values import encode, hostile
from tests.support.scripted_server import ManualClock, ScriptedStream

_HASH = "controller-revision-hash"
_SETTLED = 60.0  # seconds of the manual clock in which everything is looked at
_WHOLE = "whole"  # the name of the node that is never damaged


class Damaged:
    """A small cluster whose objects are damaged in places."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self._draw = Generator(random, calm=30)
        self._version = 10

    def _meta(self, name: str, **more: Any) -> Object:
        self._version += 1
        known = {"name": name, "uid": f"uid-{name}", "resourceVersion": str(self._version)}
        return {**known, "creationTimestamp": "2023-11-14T22:00:00Z", "generation": 1, **more}

    def _owned(self, name: str, **more: Any) -> Object:
        owner = {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "name": "set",
            "uid": "uid-set",
            "controller": True,
        }
        labels = {"a": "b", _HASH: "h1"}
        return self._meta(name, namespace="default", ownerReferences=[owner], labels=labels, **more)

    def nodes(self) -> list[Object]:
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        return [{"metadata": self._meta(name), "status": ready} for name in ("n1", "n2")]

    def daemonsets(self, advanced: bool) -> list[Object]:
        sample = samples.ADVANCED[0] if advanced else samples.SETS
        obj = sample.example("advanced" if advanced else "set")
        obj["metadata"] = self._meta(obj["metadata"]["name"], namespace="default")
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}
        obj["spec"]["updateStrategy"] = strategy
        return [obj]

    def pods(self) -> list[Object]:
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        spec = {"containers": [{"name": "c", "image": "x:1"}]}
        return [
            {
                "metadata": self._owned(f"pod-{node}"),
                "spec": {**spec, "nodeName": node},
                "status": ready,
            }
            for node in ("n1", "n2")
        ]

    def revisions(self) -> list[Object]:
        example = samples.REVISIONS.example("set-h1")
        return [{**example, "metadata": self._owned("set-h1")}]

    def damaged(self, obj: Object, sample: samples.Sample) -> bytes:
        """The JSON of an object, mostly with something wrong in it."""
        for _ in range(self.random.randrange(4)):
            if self.random.random() < 0.5:
                self._draw._adorn(obj, samples_type(sample))
            else:
                self._draw.spoil(obj)
        if self.random.random() < 0.02:
            return encode(hostile(self.random))
        return encode(obj)

    def whole(self) -> bytes:
        return encode({"metadata": self._meta(_WHOLE)})


def samples_type(sample: samples.Sample) -> Any:
    from everynode.api import types

    return types.lookup(sample.type_name)


class DamagedServer:
    """Lists and watches of damaged objects; writes get any answer."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.damaged = Damaged(random)
        self.asked = 0

    def _objects(self, path: str) -> list[bytes]:
        made = self.damaged
        match path.rsplit("/", 1)[1]:
            case "nodes":
                return [
                    *(made.damaged(obj, samples.NODES) for obj in made.nodes()),
                    made.whole(),
                ]
            case "pods":
                return [made.damaged(obj, samples.PODS) for obj in made.pods()]
            case "controllerrevisions":
                return [made.damaged(obj, samples.REVISIONS) for obj in made.revisions()]
            case "daemonsets":
                advanced = "kruise" in path
                sample = samples.ADVANCED[0] if advanced else samples.SETS
                return [made.damaged(obj, sample) for obj in made.daemonsets(advanced)]
        return []

    async def send(self, request: Request) -> Response:
        self.asked += 1
        if request.method == "GET":
            items = b",".join(self._objects(request.path))
            return Response(200, b'{"metadata":{"resourceVersion":"9"},"items":[%b]}' % items)
        sort = self.random.randrange(6)
        if sort == 0:
            return Response(409, b'{"kind":"Status","reason":"Conflict","code":409}')
        if sort == 1:
            return Response(
                self.random.choice((200, 403, 404, 422, 500)), encode(hostile(self.random))
            )
        body = request.body if request.body.startswith(b"{") else b"{}"
        return Response(201, body)

    async def open(self, request: Request) -> ScriptedStream:
        self.asked += 1
        query = dict(request.query)
        found = self._objects(request.path)
        if query.get("sendInitialEvents") == "true":
            mark = {"k8s.io/initial-events-end": "true"}
            end = encode({"metadata": {"resourceVersion": "9", "annotations": mark}})
            return ScriptedStream(
                *(_event("ADDED", each) for each in found), _event("BOOKMARK", end)
            )
        kinds = ("ADDED", "MODIFIED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR", "ODD")
        return ScriptedStream(*(_event(self.random.choice(kinds), each) for each in found))

    async def close(self) -> None:
        pass


def _event(kind: str, obj: bytes) -> bytes:
    return b'{"type":"%b","object":%b}' % (kind.encode(), obj)


class Raised(logging.Handler):
    """The unexpected errors: what was logged with a traceback."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1] is not None:
            self.found.append(f"{record.getMessage()}: {record.exc_info[1]!r}")


@contextmanager
def listening() -> Iterator[Raised]:
    handler = Raised()
    logger = logging.getLogger("everynode")
    logger.addHandler(handler)
    try:
        yield handler
    finally:
        logger.removeHandler(handler)


async def control(seed: int) -> tuple[int, str]:
    """Run a controller on a damaged cluster: how often it asked, and what went wrong."""
    clock, server = ManualClock(), DamagedServer(random_of(seed))
    controller = Controller(server, clock, ControllerOptions(native=True))
    with listening() as raised:
        running = asyncio.ensure_future(controller.run())
        try:
            with bounded(20_000_000):
                for _ in range(6):
                    await clock.advance(_SETTLED / 6)
        except EndlessError as error:
            return server.asked, f"without end: {error}"
        if running.done():
            return server.asked, f"the controller ended: {running.exception()!r}"
        known = controller.informers.nodes.get(_WHOLE) is not None
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    if raised.found:
        return server.asked, f"failed: {raised.found[0]}"
    return server.asked, "" if known else "an object that is whole is not known"


@pytest.mark.timeout(3600)
def test_no_object_stops_the_controller(capsys: pytest.CaptureFixture[str]) -> None:
    summary, cases = RunSummary("requests of a controller in damaged clusters"), seeds(25)
    failures = []
    for seed in cases:
        asked, why = asyncio.run(control(seed))
        summary.answers["answered"] += asked
        if why:
            failures.append(f"seed {seed}: {why}")
    summary.tell(capsys, cases)
    assert not failures, "\n".join(failures)


@pytest.mark.timeout(3600)
def test_decoders_raise_nothing_but_their_own_error(capsys: pytest.CaptureFixture[str]) -> None:
    summary, cases = RunSummary("damaged objects decoded"), seeds(300)
    decoders: dict[str, Any] = {
        "pods": Decoder(Pod).one,
        "nodes": Decoder(Node).one,
        "controllerrevisions": Decoder(ControllerRevision).one,
    }
    failures = []
    for seed in cases:
        server = DamagedServer(random_of(seed))
        for path in (
            "/pods",
            "/nodes",
            "/controllerrevisions",
            "/daemonsets",
            "/kruise/daemonsets",
        ):
            for body in server._objects(path):
                error = _raised(decoders.get(path.rpartition("/")[2]), path, body)
                summary.answers[error or "decoded"] += 1
                if error not in ("", "DecodeError", "ValueError"):
                    failures.append(f"seed {seed}: {path}: {error}: {body[:1500]!r}")
    summary.tell(capsys, cases)
    assert not failures, "\n".join(failures[:10])


def _raised(decode: Any, path: str, body: bytes) -> str:
    """The name of the error that decoding raises; of DaemonSets any ValueError is the right one."""
    try:
        if decode is not None:
            decode(body)
        else:
            flavour = Flavour.ADVANCED if "kruise" in path else Flavour.NATIVE
            decode_daemonset(body, flavour=flavour)
    except DecodeError:
        return "DecodeError"
    except Exception as error:
        if decode is None and isinstance(error, ValueError):
            return "ValueError"
        return f"{type(error).__name__} ({error})"
    return ""
