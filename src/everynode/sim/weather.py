"""What goes wrong now: the faults of a plan that are in force, and how often each has struck."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from everynode.kube.requests import Request
from everynode.sim.plan import Happening

T = TypeVar("T")

# Faults that strike one request of a controller, by its number.
OF_CALLS: Final = (
    "crash-before",
    "crash-after",
    "crash-answered",
    "refuse",
    "lose-request",
    "lose-answer",
    "slow-answer",
)
_REFUSING: Final = ("deny-pods", "quota", "namespace-ending", "slow-admission")
_CREATED: Final = ("/pods", "/controllerrevisions", "/events")


class Sky:
    """The faults in force, for all processes."""

    def __init__(
        self, happenings: Sequence[Happening], *, seed: object, time: Callable[[], float]
    ) -> None:
        self.struck: Counter[str] = Counter()
        self.called: list[str] = []  # the method of every request that could be struck
        self.clear = False  # the faults are over
        self._time = time
        self._random = random.Random(f"{seed}/sky")
        self._by_call = {each.call: each for each in happenings if each.what in OF_CALLS}
        self._windows: list[tuple[float, Happening]] = []

    def begin(self, happening: Happening) -> None:
        """A fault that lasts begins."""
        self._windows.append((self._time() + happening.seconds, happening))

    def strike(self, happening: Happening) -> None:
        """Something of the plan happens: it counts by what it is and by the fault it stands for."""
        self.count(happening.what)
        if happening.fault:
            self.count(happening.fault)

    def count(self, what: str, times: int = 1) -> None:
        """Something struck."""
        self.struck[what] += times

    def lift(self) -> None:
        """All faults are over."""
        self.clear = True
        self._windows.clear()
        self._by_call.clear()

    @property
    def calm(self) -> bool:
        """Whether nothing is wrong with any stream now."""
        return not self._windows

    def _in_force(self, *names: str) -> list[tuple[float, Happening]]:
        now = self._time()
        self._windows = [each for each in self._windows if each[0] > now]
        return [each for each in self._windows if each[1].what in names]

    # --- Requests --------------------------------------------------------------------------------

    def fault_of_call(self, name: str, request: Request) -> Happening | None:
        """What strikes this request; events and leases are not counted."""
        if request.path.endswith("/events") or "/events/" in request.path:
            return None
        if "/leases" in request.path:
            return None
        if not self.clear:
            self.called.append(request.method)
        fault = self._by_call.pop(len(self.called) - 1, None) or self._refused(request)
        if fault is not None:
            self.strike(fault)
        return fault

    def _refused(self, request: Request) -> Happening | None:
        if self.calm:
            return None
        if request.method == "GET" and _asks(request, "continue"):
            expired = self._in_force("expiring-pages") and self._random.random() < 0.25
            return Happening("refuse", args={"status": 410}) if expired else None
        if request.method != "POST" or not request.path.endswith(_CREATED):
            return None
        for _, each in self._in_force(*_REFUSING):
            if request.path.endswith("/pods") or each.what == "namespace-ending":
                if each.what == "slow-admission":
                    return Happening("refuse", seconds=10.0, args={"status": 504})
                return Happening("refuse", args={"status": 403, "why": each.what})
        return None

    def altered(self, request: Request) -> Request:
        """The request as it arrives, after what stands in between has changed it."""
        if self.calm:
            return request
        if request.method == "GET" and _asks(request, "limit") and self._in_force("expiring-pages"):
            query = tuple((k, "2" if k == "limit" else v) for k, v in request.query)
            return replace(request, query=query)
        creates = request.method == "POST" and request.path.endswith("/pods")
        if creates and self._in_force("mutate-pods"):
            return replace(request, body=_injected(request.body))
        return request

    def is_cut_off(self, name: str) -> bool:
        """Whether this process cannot reach the server."""
        if self._in_force("outage"):
            return True
        return any(name.startswith(each.args["who"]) for _, each in self._in_force("cut-off"))

    def refused_watch(self, request: Request) -> int:
        """The status with which watches are refused now, 0 if they are not."""
        if self.calm:
            return 0
        streaming = _asks(request, "sendInitialEvents")
        if streaming and self._in_force("expiring-pages"):
            return 422
        for _, each in self._in_force("refuse-watch"):
            if streaming or not each.args.get("lists"):
                self.count("refuse-watch")
                return int(each.args["status"])
        return 0

    # --- Streams -------------------------------------------------------------------------------

    def _concerning(self, what: str, kind: str, who: str = "") -> list[tuple[float, Happening]]:
        return [
            each
            for each in self._in_force(what)
            if each[1].args.get("kind", kind) == kind
            and (not who or who.startswith(each[1].args.get("who", who)))
        ]

    def held_until(self, who: str, kind: str) -> tuple[float, bool]:
        """Until when nothing of this kind is delivered, and whether states are then left out."""
        found = self._concerning("hold-watch", kind, who)
        if not found:
            return 0.0, False
        until, happening = max(found, key=lambda each: each[0])
        return until, bool(happening.args.get("coalesce"))

    def behind(self, who: str) -> int:
        """By how many events the watches of this process trail behind."""
        found = self._in_force("lagging-replica")
        mine = [each for _, each in found if who.startswith(each.args["who"])]
        return max((int(each.args["behind"]) for each in mine), default=0)

    def is_silent(self, who: str, kind: str) -> bool:
        """Whether the streams of this kind have died without a word."""
        return bool(self._concerning("silence", kind, who))

    def drops(self, kind: str, line: bytes) -> bool:
        """Whether this line is left out: a bookmark, where there are none."""
        if b'"BOOKMARK"' not in line[:20] or b"initial-events-end" in line:
            return False
        return bool(self._concerning("no-bookmarks", kind))

    def stutters(self, kind: str) -> bool:
        """Whether something is told once more."""
        if not self._concerning("stutter", kind) or self._random.random() > 0.3:
            return False
        self.count("stutter")
        return True

    def pick(self, among: Sequence[T]) -> T:
        """One of several."""
        return self._random.choice(among)


def _asks(request: Request, key: str) -> bool:
    return any(name == key and value for name, value in request.query)


def _injected(body: bytes) -> bytes:
    """A pod as an admission webhook leaves it that adds what its owner likes."""
    pod = msgspec.json.decode(body)
    pod["metadata"].setdefault("annotations", {})["injected"] = "yes"
    for container in pod["spec"]["containers"]:
        container.setdefault("env", []).append({"name": "INJECTED", "value": "yes"})
    return msgspec.json.encode(pod)
