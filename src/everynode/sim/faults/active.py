"""ActiveFaults: the faults of a plan that are in force now, and how often each was applied."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from everynode.kube.requests import Request
from everynode.sim.plans.plan import Action

T = TypeVar("T")

# Faults that apply to one request of a controller, given by its number.
REQUEST_FAULTS: Final = (
    "crash-before",
    "crash-after",
    "crash-answered",
    "refuse",
    "lose-request",
    "lose-answer",
    "slow-answer",
)
_REFUSING: Final = ("deny-pods", "quota", "namespace-ending", "slow-admission")
# Lasting faults of all requests with one method, and the fault of each such request.
_OF_METHOD: Final = {"lose-requests": "lose-request", "lose-answers": "lose-answer"}
_CREATE_PATHS: Final = ("/pods", "/controllerrevisions", "/events")


class ActiveFaults:
    """The faults in force for all processes."""

    def __init__(
        self, actions: Sequence[Action], *, seed: object, time: Callable[[], float]
    ) -> None:
        self.fault_counts: Counter[str] = Counter()
        self.requests_made: list[str] = []  # the method of every request that a fault can apply to
        self.lifted = False  # all faults have ended
        self._time = time
        self._random = random.Random(f"{seed}/sky")
        self._by_request = {
            each.at_request: each for each in actions if each.name in REQUEST_FAULTS
        }
        self._windows: list[tuple[float, Action]] = []

    def begin(self, action: Action) -> None:
        """Begin a lasting fault."""
        self._windows.append((self._time() + action.seconds, action))

    def count_action(self, action: Action) -> None:
        """Count an action by its name and by its fault number."""
        self.count(action.name)
        if action.fault:
            self.count(action.fault)

    def count(self, what: str, times: int = 1) -> None:
        """Count a fault that was applied."""
        self.fault_counts[what] += times

    def end_all(self) -> None:
        """End all faults."""
        self.lifted = True
        self._windows.clear()
        self._by_request.clear()

    @property
    def none_active(self) -> bool:
        """Whether no lasting fault is in force."""
        return not self._windows

    def _in_force(self, *names: str) -> list[tuple[float, Action]]:
        now = self._time()
        self._windows = [each for each in self._windows if each[0] > now]
        return [each for each in self._windows if each[1].name in names]

    # --- Requests --------------------------------------------------------------------------------

    def fault_of_request(self, name: str, request: Request) -> Action | None:
        """The fault of this request, if any; requests for events and leases are not counted."""
        if request.path.endswith("/events") or "/events/" in request.path:
            return None
        if "/leases" in request.path:
            return None
        if not self.lifted:
            self.requests_made.append(request.method)
        fault = self._by_request.pop(len(self.requests_made) - 1, None)
        if fault is None and not self.none_active:
            fault = self._lasting_fault_of(request)
        if fault is not None:
            self.count_action(fault)
        return fault

    def _lasting_fault_of(self, request: Request) -> Action | None:
        """The fault of a request by the faults that last."""
        if request.method == "GET" and _asks(request, "continue"):
            expired = self._in_force("expiring-pages") and self._random.random() < 0.25
            return Action("refuse", args={"status": 410}) if expired else None
        for _, each in self._in_force(*_OF_METHOD):
            if each.args["method"] == request.method:
                return Action(_OF_METHOD[each.name])
        if request.method == "PATCH" and b'"ownerReferences"' in request.body:
            denied = self._in_force("deny-adoption")
            return Action("refuse", args={"status": 403, "why": "deny-pods"}) if denied else None
        for _, each in self._in_force("refuse-image"):
            if _carries_image(request, each.args["image"]):
                return Action("refuse", args={"status": 403, "why": each.name})
        if request.method != "POST" or not request.path.endswith(_CREATE_PATHS):
            return None
        for _, each in self._in_force(*_REFUSING):
            if request.path.endswith("/pods") or each.name == "namespace-ending":
                if each.name == "slow-admission":
                    return Action("refuse", seconds=10.0, args={"status": 504})
                return Action("refuse", args={"status": 403, "why": each.name})
        return None

    def after_admission(self, request: Request) -> Request:
        """The request as the server sees it, after mutating admission or a smaller page limit."""
        if self.none_active:
            return request
        if request.method == "GET" and _asks(request, "limit") and self._in_force("expiring-pages"):
            query = tuple((k, "2" if k == "limit" else v) for k, v in request.query)
            return replace(request, query=query)
        creates = request.method == "POST" and request.path.endswith("/pods")
        if creates and self._in_force("mutate-pods"):
            return replace(request, body=_inject(request.body))
        return request

    def is_cut_off(self, name: str) -> bool:
        """Whether this process cannot reach the server."""
        if self._in_force("outage"):
            return True
        return any(name.startswith(each.args["who"]) for _, each in self._in_force("cut-off"))

    def refused_watch(self, request: Request) -> int:
        """The status with which watches are refused now, 0 if they are not."""
        if self.none_active:
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

    def _concerning(self, what: str, kind: str, who: str = "") -> list[tuple[float, Action]]:
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
        until, action = max(found, key=lambda each: each[0])
        return until, bool(action.args.get("coalesce"))

    def events_behind(self, who: str) -> int:
        """By how many events the watches of this process lag."""
        found = self._in_force("lagging-replica")
        mine = [each for _, each in found if who.startswith(each.args["who"])]
        return max((int(each.args["behind"]) for each in mine), default=0)

    def is_silent(self, who: str, kind: str) -> bool:
        """Whether watches of this kind get no events and are not closed either."""
        return bool(self._concerning("silence", kind, who))

    def drops_bookmark(self, kind: str, line: bytes) -> bool:
        """Whether this line is a bookmark that a fault drops."""
        if b'"BOOKMARK"' not in line[:20] or b"initial-events-end" in line:
            return False
        return bool(self._concerning("no-bookmarks", kind))

    def repeats_event(self, kind: str) -> bool:
        """Whether a fault delivers an event twice."""
        if not self._concerning("stutter", kind) or self._random.random() > 0.3:
            return False
        self.count("stutter")
        return True

    def pick(self, among: Sequence[T]) -> T:
        """Draw one of several items."""
        return self._random.choice(among)


def _asks(request: Request, key: str) -> bool:
    return any(name == key and value for name, value in request.query)


def _carries_image(request: Request, image: str) -> bool:
    """Whether a request creates a pod with this image, or gives it to an existing one."""
    writes_pod = request.method in ("POST", "PATCH") and "/pods" in request.path
    return writes_pod and f'"{image}"'.encode() in request.body


def _inject(body: bytes) -> bytes:
    """The pod after a mutating admission webhook has changed it."""
    pod = msgspec.json.decode(body)
    pod["metadata"].setdefault("annotations", {})["injected"] = "yes"
    for container in pod["spec"]["containers"]:
        container.setdefault("env", []).append({"name": "INJECTED", "value": "yes"})
    return msgspec.json.encode(pod)
