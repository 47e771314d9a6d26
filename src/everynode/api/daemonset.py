"""DaemonSet: the internal form of both kinds and all API versions."""

from __future__ import annotations

import enum

import msgspec

from everynode.api.objects import Condition, ObjectMeta


class Flavour(enum.Enum):
    """Which of the two kinds called DaemonSet this is."""

    NATIVE = "apps/v1"
    ADVANCED = "apps.kruise.io"

    @property
    def short(self) -> str:
        """The resource as kubectl abbreviates it."""
        return "ads" if self is Flavour.ADVANCED else "ds"


class FieldError(msgspec.Struct, frozen=True, gc=False):
    """A validation error of one field: its path and a message."""

    path: str
    message: str  # in Kubernetes' format: kind of error, value, detail
    reason: str = "FieldValueInvalid"  # as in the causes of a Status

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class LabelSelectorRequirement(msgspec.Struct, frozen=True, gc=False):
    """One expression of a label selector."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class LabelSelector(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Which labels an object must have; empty selects everything."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class IntOrPercent(msgspec.Struct, frozen=True, gc=False):
    """An int-or-percent: a number of nodes, or a percentage of all."""

    value: int
    percent: bool = False

    def __str__(self) -> str:
        """The value as a manifest has it, without quotes: 3 or 10%."""
        return f"{self.value}%" if self.percent else str(self.value)


class UpdateStrategyType(enum.Enum):
    """The type of the update strategy."""

    ROLLING = "RollingUpdate"
    ON_DELETE = "OnDelete"


class RollingUpdateType(enum.Enum):
    """How one node is updated. Surging is decoded as Standard with a maxSurge."""

    STANDARD = "Standard"
    IN_PLACE = "InPlaceIfPossible"


class UpdateStrategy(msgspec.Struct, frozen=True, gc=False):
    """The update strategy with all defaults resolved."""

    type: UpdateStrategyType = UpdateStrategyType.ROLLING
    rolling: RollingUpdateType = RollingUpdateType.STANDARD
    max_unavailable: IntOrPercent = IntOrPercent(1)
    max_surge: IntOrPercent = IntOrPercent(0)
    partition: IntOrPercent = IntOrPercent(0)
    selector: LabelSelector | None = None
    paused: bool = False


class LifecycleHook(msgspec.Struct, frozen=True, gc=False):
    """The preDelete hook: a pod with any of these labels or finalizers is not deleted."""

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
    """A DaemonSet of either kind, decoded: defaults applied, invalid values listed in `faults`."""

    flavour: Flavour
    metadata: ObjectMeta
    selector: LabelSelector
    template: bytes  # the raw JSON of spec.template, exactly as stored
    strategy: UpdateStrategy = UpdateStrategy()
    min_ready_seconds: int = 0
    burst: IntOrPercent = IntOrPercent(250)
    history_limit: int = 10
    pre_delete: LifecycleHook | None = None
    progressive: bool = False
    status: DaemonSetStatus = DaemonSetStatus()
    faults: tuple[FieldError, ...] = ()

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

    @property
    def short_name(self) -> str:
        """`ads/NAME` or `ds/NAME`, as one would type it."""
        return f"{self.flavour.short}/{self.name}"
