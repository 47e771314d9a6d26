"""The one internal shape of a DaemonSet, whatever API version it was written in."""

from __future__ import annotations

import enum

import msgspec

from everynode.api.objects import Condition, ObjectMeta


class Flavour(enum.Enum):
    """Which of the two kinds called DaemonSet this is."""

    NATIVE = "apps/v1"
    ADVANCED = "apps.kruise.io"


class Fault(msgspec.Struct, frozen=True, gc=False):
    """Something wrong with an object, at a field path, in words a person understands."""

    path: str
    message: str  # as Kubernetes words it: kind of error, value, detail
    reason: str = "FieldValueInvalid"  # as in the causes of a Status

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class Requirement(msgspec.Struct, frozen=True, gc=False):
    """One expression of a label selector."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class LabelSelector(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Which labels an object must have; empty selects everything."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[Requirement, ...] = ()


class Amount(msgspec.Struct, frozen=True, gc=False):
    """A number of nodes, absolute or a percentage of all."""

    value: int
    percent: bool = False


class UpdateType(enum.Enum):
    """What a template change does."""

    ROLLING = "RollingUpdate"
    ON_DELETE = "OnDelete"


class RollingType(enum.Enum):
    """How one node is updated. Surging is Standard with a surge and is stored as such."""

    STANDARD = "Standard"
    IN_PLACE = "InPlaceIfPossible"


class Strategy(msgspec.Struct, frozen=True, gc=False):
    """The update strategy with all defaults resolved."""

    type: UpdateType = UpdateType.ROLLING
    rolling: RollingType = RollingType.STANDARD
    max_unavailable: Amount = Amount(1)
    max_surge: Amount = Amount(0)
    partition: Amount = Amount(0)
    selector: LabelSelector | None = None
    paused: bool = False


class Hook(msgspec.Struct, frozen=True, gc=False):
    """The preDelete hook: while a pod carries any of these, it is not deleted."""

    labels: dict[str, str] = {}
    finalizers: tuple[str, ...] = ()
    mark_not_ready: bool = False


class DaemonSetStatus(msgspec.Struct, frozen=True, gc=False):
    """The status as it was read or as it is to be written."""

    observed_generation: int = 0
    desired: int = 0
    current: int = 0
    misscheduled: int = 0
    ready: int = 0
    updated: int = 0
    available: int = 0
    unavailable: int = 0
    update_revision: str = ""
    collision_count: int | None = None
    conditions: tuple[Condition, ...] = ()


class DaemonSet(msgspec.Struct, frozen=True, gc=False):
    """A DaemonSet of either kind, decoded: defaults applied, bad values named in `faults`."""

    flavour: Flavour
    metadata: ObjectMeta
    selector: LabelSelector
    template: bytes  # the raw JSON of spec.template, exactly as stored
    strategy: Strategy = Strategy()
    min_ready_seconds: int = 0
    burst: Amount = Amount(250)
    history_limit: int = 10
    pre_delete: Hook | None = None
    progressive: bool = False
    status: DaemonSetStatus = DaemonSetStatus()
    faults: tuple[Fault, ...] = ()

    @property
    def name(self) -> str:
        """The DaemonSet's name."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """The namespace of the DaemonSet and its pods."""
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        """The DaemonSet's unique id."""
        return self.metadata.uid
