"""Reported status: what a kubelet last wrote about a pod, and whether it has to write again."""

from __future__ import annotations


class WrittenCondition:
    """A pod condition as it was last written."""

    __slots__ = ("had_reason", "since", "status")

    def __init__(self, status: str, since: str, *, had_reason: bool) -> None:
        self.status = status
        self.since = since  # lastTransitionTime
        self.had_reason = had_reason  # whether it has, or once had, a reason


class ReportedStatus:
    """The status of one pod in the API, as its kubelet knows it.

    `dirty` means that the status must be computed again; it is sent only if `body` then differs.
    """

    __slots__ = ("body", "conditions", "dirty", "resource_version", "write_in_flight")

    def __init__(self) -> None:
        self.conditions: dict[str, WrittenCondition] = {}  # by type
        self.dirty = True
        self.body = b""  # the status as last written, empty if it has to be written in any case
        self.resource_version = 0  # of the pod after the last write
        self.write_in_flight = False
