"""What goes wrong now: the faults of a plan that are in force, and how often each has struck."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

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
_REFUSING_PODS: Final = ("deny-pods", "quota", "namespace-ending")


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
        self.count(happening.what)

    def count(self, what: str, times: int = 1) -> None:
        """Something struck."""
        self.struck[what] += times

    def lift(self) -> None:
        """All faults are over."""
        self.clear = True
        self._windows.clear()
        self._by_call.clear()

    def _in_force(self, *names: str) -> list[tuple[float, Happening]]:
        if not self._windows:
            return []
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
        fault = self._by_call.pop(len(self.called) - 1, None) or self._refused_pod(request)
        if fault is not None:
            self.count(fault.what)
        return fault

    def _refused_pod(self, request: Request) -> Happening | None:
        if request.method != "POST" or not request.path.endswith("/pods"):
            return None
        if self._in_force(*_REFUSING_PODS):
            return Happening("refuse", args={"status": 403})
        return None

    def altered(self, request: Request) -> Request:
        """The request as it arrives, after what stands in between has changed it."""
        return request

    def is_cut_off(self, name: str) -> bool:
        """Whether this process cannot reach the server."""
        if self._in_force("outage"):
            return True
        return any(name.startswith(each.args["who"]) for _, each in self._in_force("cut-off"))

    def refused_watch(self, request: Request) -> int:
        """The status with which watches are refused now, 0 if they are not."""
        for _, each in self._in_force("refuse-watch"):
            streaming = any(key == "sendInitialEvents" for key, _ in request.query)
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
