"""Simulated pod: the state machine of one pod on its node.

A pod is driven from outside and has no task of its own. Its kubelet calls `update` when the API
object has changed and `advance` when `due_at` is reached, then writes the status if
`reported.dirty` is set. Neighbouring modules hold the parts of a pod: its containers
(`container.py`), a resize (`resize.py`), the status as last written (`reported_status.py`).

Example, with times in seconds (pull 1, start 1, stop 1):

    0.0  advance   the container starts to pull its image       due_at 1.0
    1.0  advance   the image is there, the container starts     due_at 2.0
    2.0  advance   the container runs and is ready              due_at NEVER
    9.0  update    the API object has a deletionTimestamp       state TERMINATING, due_at 10.0
   10.0  advance   the container has stopped                    state TERMINATED
   10.0            the kubelet writes the status, deletes the pod with grace period 0: REMOVED
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from operator import attrgetter
from typing import Final, Protocol

from everynode.api.times import format_time, seconds
from everynode.components.kubelet.behaviour import (
    NO_OVERRIDES,
    Behaviour,
    BehaviourError,
    BehaviourOverrides,
    ImageOverrides,
    parse_overrides,
)
from everynode.components.kubelet.container import ContainerPhase, SimulatedContainer
from everynode.components.kubelet.images import ImageStore, pull_seconds
from everynode.components.kubelet.reported_status import ReportedStatus, WrittenCondition
from everynode.components.kubelet.resize import Resize, apply_resize, requested_resources
from everynode.components.objects import FullContainer, FullPod
from everynode.components.timers import NEVER

# `map` over these is faster than a generator expression; `advance` runs for every due pod.
_ID: Final = attrgetter("id")
_ENDED: Final = attrgetter("ended")
_READY: Final = attrgetter("ready")
_DUE_AT: Final = attrgetter("due_at")
_DEADLINE_EXCEEDED: Final = (
    "DeadlineExceeded",
    "Pod was active on the node longer than the specified deadline",
)


class PodState(enum.Enum):
    """Where a pod is between its first container and its removal from the API.

    ACTIVE ──deleted──> TERMINATING ──containers stopped──> TERMINATED ──delete sent──> REMOVED
      │                                                         ^
      └──all containers ended, refused or evicted──> FINISHED ──┘ deleted before it was reported
    """

    ACTIVE = "active"
    TERMINATING = "terminating"
    TERMINATED = "terminated"  # every container has ended because the pod was deleted
    REMOVED = "removed"  # the kubelet has sent the delete with grace period 0
    FINISHED = "finished"  # it has failed or succeeded


class PodEnvironment(Protocol):
    """The node of a pod, as far as the pod uses it."""

    name: str
    address: str
    image_store: ImageStore
    slow: float

    @property
    def behaviour(self) -> Behaviour:
        """How long things take."""
        ...

    @property
    def images(self) -> ImageOverrides:
        """The behaviour of particular images."""
        ...

    def wall_time(self) -> float:
        """The time of day."""
        ...


# The pod, reason, message, field path and whether it is a warning.
RecordEvent = Callable[[FullPod, str, str, str, bool], None]


class SimulatedPod:
    """One pod from the moment its kubelet sees it. The module's docstring has an example."""

    __slots__ = (
        "_annotation",
        "_annotation_overrides",
        "_record_event",
        "api_object",
        "behaviour",
        "containers",
        "deadline",
        "due_at",
        "failure",
        "generation",
        "image_store",
        "init_containers",
        "ip",
        "node",
        "reported",
        "resize",
        "start_time",
        "started",
        "state",
        "timer_at",
        "uid",
    )

    def __init__(
        self, api_object: FullPod, node: PodEnvironment, ip: str, *, record_event: RecordEvent
    ) -> None:
        self.api_object = api_object
        self.uid = api_object.uid
        self.node = node
        self.image_store = node.image_store
        self.behaviour = node.behaviour
        self.ip = ip
        self.state = PodState.ACTIVE
        self.due_at = NEVER  # when `advance` has something to do
        self.timer_at = NEVER  # when the kubelet's timer for this pod fires
        self.deadline = NEVER  # when activeDeadlineSeconds has passed
        self.started = seconds(api_object.status.start_time) or node.wall_time()
        self.start_time = format_time(self.started)
        self.generation = api_object.metadata.generation  # the status's observedGeneration
        self.failure: tuple[str, str] | None = None  # why the kubelet ended or refused it
        self.resize: Resize | None = None
        self.reported = ReportedStatus()
        self._record_event = record_event
        self._annotation = ""
        self._annotation_overrides = NO_OVERRIDES
        self._read_annotation()
        spec = api_object.spec
        self.init_containers = [SimulatedContainer(each, self) for each in spec.init_containers]
        self.containers = [SimulatedContainer(each, self) for each in spec.containers]

    # --- What containers use of their pod (ContainerEnvironment) ---------------------------------

    def wall_time(self) -> float:
        """The time of day."""
        return self.node.wall_time()

    def overrides(self, image: str) -> BehaviourOverrides:
        """The behaviour of an image in this pod, where it differs from the cluster's."""
        return self._annotation_overrides.with_fallback(self.node.images.of(image, self.node.name))

    def pull_seconds(self, image: str) -> float:
        """Simulated seconds a pull takes."""
        annotated = self._annotation_overrides.pull
        if annotated is not None:
            return annotated
        return pull_seconds(image, self.node.name, self.behaviour, self.node.images)

    def real_seconds(self, simulated: float) -> float:
        """Real seconds that a simulated duration takes on this node."""
        return self.behaviour.scaled(simulated * self.node.slow)

    def restarts_after(self, exit_code: int) -> bool:
        """Whether the restart policy runs a container again that ended with this code."""
        policy = self.api_object.spec.restart_policy
        return policy == "Always" or (policy == "OnFailure" and exit_code != 0)

    def record_event(
        self, reason: str, message: str, *, container: str, warning: bool = False
    ) -> None:
        """Record an event about a container."""
        path = f"spec.containers{{{container}}}"
        self._record_event(self.api_object, reason, message, path, warning)

    def record_warning(self, reason: str, message: str) -> None:
        """Record a warning about the pod as a whole."""
        self._record_event(self.api_object, reason, message, "", True)

    # --- What the kubelet asks -------------------------------------------------------------------

    @property
    def initialized(self) -> bool:
        """Whether all init containers are done."""
        return all(_is_init_done(container) for container in self.init_containers)

    @property
    def has_started(self) -> bool:
        """Whether any container runs or ever ran."""
        return any(map(_ID, (*self.init_containers, *self.containers)))

    @property
    def containers_ready(self) -> bool:
        """Whether all containers are ready; until then readiness gates do not matter."""
        return all(map(_READY, self.containers))

    @property
    def phase(self) -> str:
        """The phase that follows from the containers."""
        if self.failure is not None:
            return "Failed"
        if self.api_object.finished and self.state is not PodState.ACTIVE:
            return self.api_object.status.phase  # final, also if another client wrote it
        if all(map(_ENDED, self.containers)):
            if self.state is PodState.TERMINATED and not self.behaviour.final_phase:
                return "Running" if self.has_started else "Pending"
            failed = any(
                each.termination is None or each.termination.exit_code for each in self.containers
            )
            return "Failed" if failed else "Succeeded"
        return "Running" if self.has_started and self._all_created() else "Pending"

    def _all_created(self) -> bool:
        """A pod runs once all its containers were created and one of them runs or restarts."""
        return self.initialized and all(map(_ID, self.containers))

    # --- How it begins ---------------------------------------------------------------------------

    def resume(self, now: float) -> None:
        """Continue from the status that an earlier run of the kubelet has written."""
        status = self.api_object.status
        statuses = {each.name: each for each in status.container_statuses}
        for condition in status.conditions:
            since = format_time(seconds(condition.last_transition_time) or self.wall_time())
            written = WrittenCondition(condition.status, since, had_reason=bool(condition.reason))
            self.reported.conditions[condition.type] = written
        if self.api_object.finished:
            self.state = PodState.FINISHED
            return
        self._set_deadline(now)
        for container in self.containers:
            container_status = statuses.get(container.spec.name)
            if container_status is not None:
                container.resume(container_status, now)
        if any(container.running for container in self.containers):
            self._set_init_done(now)

    def set_running(self, now: float) -> None:
        """Make it Running and Ready at once, as if it had been started earlier."""
        self._set_deadline(now)
        self._set_init_done(now)
        for container in self.containers:
            container.set_running(now)
        self._set_due_at()

    def _set_init_done(self, now: float) -> None:
        for container in self.init_containers:
            container.set_running(now)
            if not _is_sidecar(container.spec):
                container.stop(now)

    # --- What changes it -------------------------------------------------------------------------

    def update(self, api_object: FullPod, now: float) -> None:
        """The API object has changed."""
        before, self.api_object = self.api_object, api_object
        if api_object.spec.containers != before.spec.containers or (
            self.containers_ready and _gates_changed(before, api_object)
        ):
            self.reported.dirty = True
        if self.state is not PodState.ACTIVE:
            self._update_inactive(now)
            return
        if api_object.metadata.annotations.behaviour != self._annotation:
            self._read_annotation()
            self.overrides_changed(now)
        specs = {spec.name: spec for spec in api_object.spec.containers}
        for container in self.containers:
            spec = specs.get(container.spec.name)
            if spec is not None:
                container.update(spec, now)
        if api_object.terminating:
            self._terminate(now)
            return
        if self.generation != api_object.metadata.generation:
            self.generation, self.reported.dirty = api_object.metadata.generation, True
        self._set_deadline(now)
        self._set_due_at()

    def _update_inactive(self, now: float) -> None:
        if self.state is PodState.TERMINATING:
            # A second delete may have shortened the grace period.
            self.due_at = min(self.due_at, now + self._termination_seconds())
        elif (
            self.state is PodState.FINISHED
            and self.api_object.metadata.deletion_grace_period_seconds
        ):
            # It was deleted before the API server knew that it had finished.
            self.state = PodState.TERMINATED
            self.reported.dirty = True

    def overrides_changed(self, now: float) -> None:
        """The behaviour of images, or the pod's behaviour annotation, has changed."""
        if self.state is PodState.ACTIVE:
            self.reported.dirty = True
            for container in self.containers:
                container.overrides_changed(now)
            self._set_due_at()

    def advance(self, now: float) -> None:
        """Do everything that is due."""
        if self.due_at <= now:
            self.reported.dirty = True
        elif not self.reported.dirty:
            return  # nothing has changed and nothing is due
        if self.state is PodState.ACTIVE and self.deadline <= now:
            self.fail(now, *_DEADLINE_EXCEEDED)
            self._record_event(self.api_object, *_DEADLINE_EXCEEDED, "", False)
        elif self.state is PodState.ACTIVE:
            self._advance_containers(now)
        elif self.state is PodState.TERMINATING and self.due_at <= now:
            for container in (*self.init_containers, *self.containers):
                container.stop(now)
            self.state, self.due_at = PodState.TERMINATED, NEVER
            self.generation = self.api_object.metadata.generation

    def fail(self, now: float, reason: str, message: str) -> None:
        """End it at once: it was refused or evicted, or its deadline has passed."""
        for container in (*self.init_containers, *self.containers):
            container.stop(now, exit_code=137)
        self.failure = (reason, message)
        self.state, self.due_at = PodState.FINISHED, NEVER
        self.reported.dirty = True

    def restart_containers(self, now: float) -> None:
        """The node has rebooted: no container runs any more, and each starts again."""
        if self.state is PodState.TERMINATING:
            self.due_at = now
        elif self.state is PodState.ACTIVE:
            for container in self.containers:
                container.restart_after_boot(now)
            self._set_due_at()
        self.reported.dirty = True

    def begin_resize(self, now: float, refusal: tuple[str, str] | None) -> None:
        """Change the resources after a while, or note why the node refuses it."""
        wanted = requested_resources(self.containers)
        if refusal is None:
            self.resize = Resize(wanted, now + self.real_seconds(self.behaviour.resize))
        else:
            reason, message = refusal
            self.resize = Resize(wanted, reason=reason, message=message)
        self.reported.dirty = True
        self._set_due_at()

    # --- Inside ----------------------------------------------------------------------------------

    def _advance_containers(self, now: float) -> None:
        # Containers that have started go on, even if a sidecar before them ends and restarts.
        may_start = True
        for container in self.init_containers:
            if may_start:
                container.start(now)
            container.advance(now)
            self._end_init_container(container, now)
            may_start = may_start and _is_init_done(container)
        for container in self.containers:
            if may_start:
                container.start(now)
            container.advance(now)
        if self.containers and all(map(_ENDED, self.containers)):
            self.state = PodState.FINISHED
        self._advance_resize(now)
        self._set_due_at()

    def _end_init_container(self, container: SimulatedContainer, now: float) -> None:
        """A simulated init container has done its work as soon as it has started."""
        if container.state is not ContainerPhase.RUNNING or _is_sidecar(container.spec):
            return
        if self.overrides(container.image).fail not in ("crash", "probe"):
            container.stop(now)

    def _advance_resize(self, now: float) -> None:
        if self.resize is None or self.resize.reason or self.resize.done_at > now:
            return
        apply_resize(self.containers, now)
        self.resize = None

    def _terminate(self, now: float) -> None:
        for container in self.containers:
            if container.running:
                name = container.spec.name
                self.record_event("Killing", f"Stopping container {name}", container=name)
        self.state = PodState.TERMINATING
        self.due_at = now + self._termination_seconds()

    def _termination_seconds(self) -> float:
        """Real seconds until all containers have stopped, the grace period at most."""
        containers = (*self.init_containers, *self.containers)
        slowest = max((each.termination_seconds() for each in containers), default=0.0)
        takes = self.real_seconds(slowest)
        grace = self.api_object.metadata.deletion_grace_period_seconds
        return takes if grace is None else min(takes, self.behaviour.scaled(grace))

    def _set_deadline(self, now: float) -> None:
        allowed = self.api_object.spec.active_deadline_seconds
        if allowed is not None:
            self.deadline = now + self.started + self.behaviour.scaled(allowed) - self.wall_time()

    def _set_due_at(self) -> None:
        if self.state is not PodState.ACTIVE:
            self.due_at = NEVER  # the deadline does not matter any more either
            return
        due_at = self.deadline if self.resize is None else min(self.deadline, self.resize.done_at)
        self.due_at = min(
            (due_at, *map(_DUE_AT, self.init_containers), *map(_DUE_AT, self.containers))
        )

    def _read_annotation(self) -> None:
        self._annotation = self.api_object.metadata.annotations.behaviour
        try:
            self._annotation_overrides = parse_overrides(self._annotation)
        except BehaviourError as error:
            self._annotation_overrides = NO_OVERRIDES
            self.record_warning("BadBehaviour", str(error))


def _is_init_done(container: SimulatedContainer) -> bool:
    """Whether the containers after this init container may start."""
    if _is_sidecar(container.spec):
        return container.ready
    termination = container.termination
    return container.ended and (termination is None or termination.exit_code == 0)


def _is_sidecar(spec: FullContainer) -> bool:
    return spec.restart_policy == "Always"


def _gates_changed(before: FullPod, after: FullPod) -> bool:
    """Whether the condition of a readiness gate has another status than before."""
    for gate in after.spec.readiness_gates:
        old, new = before.condition(gate.condition_type), after.condition(gate.condition_type)
        if (old and old.status) != (new and new.status):
            return True
    return False
