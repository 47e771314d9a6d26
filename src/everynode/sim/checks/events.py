"""L4 for Events: each object gets a burst, then one a minute; similar Events are combined."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from everynode.sim.history.record import RecordedRequest, request_body

_BURST: Final = 25
_REFILL: Final = 60.0  # seconds until one more Event may be written
_MAX_FINAL: Final = 4  # pending Events that may be sent when a rollout ends, or the process
_SEPARATE: Final = 10
_WINDOW: Final = 600.0

_Key = tuple[str, str, str]


class EventRate:
    """Counts the Events that each process writes."""

    def __init__(self) -> None:
        self._since: dict[_Key, float] = {}
        self._writes: dict[_Key, int] = {}
        self._complete: dict[tuple[str, str], bool] = {}  # by process and object
        self._finished: dict[str, int] = {}  # how many rollouts of an object were completed
        self._about: dict[str, _Key] = {}  # by the event's name
        self._alike: dict[tuple[_Key, str], dict[str, float]] = {}

    def cause(self, cause: RecordedRequest) -> Iterable[str]:
        """Check one more request."""
        request = cause.request
        if request.path.endswith("/status") and request.method == "PATCH":
            self._look_at_status(cause)
        if "/events" not in request.path or request.method not in ("POST", "PATCH"):
            return
        body = request_body(request)
        key = self._read(cause, body) if request.method == "POST" else None
        key = key or self._about.get(request.path.rpartition("/")[2])
        if key is None:
            return
        since = self._since.setdefault(key, cause.time)
        self._writes[key] = self._writes.get(key, 0) + 1
        most = (
            _BURST
            + 1
            + (self._finished.get(key[1], 0) + 1) * _MAX_FINAL
            + (cause.time - since) / _REFILL
        )
        if self._writes[key] > most:
            yield f"{key[0]} wrote {self._writes[key]} events of type {key[2]} on one object"
        if request.method == "POST":
            yield from self._check_alike(cause, key, body)

    def _look_at_status(self, cause: RecordedRequest) -> None:
        """Count completed rollouts: pending Events are sent at once when a rollout completes."""
        body = request_body(cause.request)
        uid = str((body.get("metadata") or {}).get("uid"))
        conditions = (body.get("status") or {}).get("conditions") or []
        now = any(each["type"] == "Complete" and each["status"] == "True" for each in conditions)
        if now and not self._complete.get((cause.actor, uid)):
            self._finished[uid] = self._finished.get(uid, 0) + 1
        self._complete[cause.actor, uid] = now

    def _read(self, cause: RecordedRequest, body: dict[str, Any]) -> _Key:
        about = body.get("involvedObject") or {}
        key = (cause.actor, str(about.get("uid")), str(body.get("type")))
        self._about[body["metadata"]["name"]] = key
        return key

    def _check_alike(
        self, cause: RecordedRequest, key: _Key, body: dict[str, Any]
    ) -> Iterable[str]:
        alike = self._alike.setdefault((key, str(body.get("reason"))), {})
        alike[body["metadata"]["name"]] = cause.time
        recent = [time for time in alike.values() if time > cause.time - _WINDOW]
        if len(recent) > _SEPARATE + 1:
            yield f"{key[0]} wrote {len(recent)} {body.get('reason')} events one by one"
