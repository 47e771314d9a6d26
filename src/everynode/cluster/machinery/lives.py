"""The life of one simulated pod on its node, from the sandbox to the last stopped container."""

from __future__ import annotations

import enum
from collections.abc import Callable
from operator import attrgetter
from typing import Final, Protocol

from everynode.api.objects import Resources
from everynode.api.times import format_time, seconds
from everynode.cluster.machinery.behaviour import (
    NO_QUIRKS,
    Behaviour,
    BehaviourError,
    ImageQuirks,
    Quirks,
    parse_quirks,
)
from everynode.cluster.machinery.containers import ContainerLife, Stage
from everynode.cluster.machinery.images import Shelf, pull_seconds
from everynode.cluster.machinery.objects import Container, Pod
from everynode.cluster.machinery.timers import NEVER

# Faster than asking one after the other.
_ID: Final = attrgetter("id")
_OVER: Final = attrgetter("over")
_READY: Final = attrgetter("ready")
_UNTIL: Final = attrgetter("until")
_TOO_LONG: Final = (
    "DeadlineExceeded",
    "Pod was active on the node longer than the specified deadline",
)


class Course(enum.Enum):
    """What the pod is about."""

    LIVING = "living"
    STOPPING = "stopping"
    STOPPED = "stopped"  # every container has ended because the pod was deleted
    REMOVED = "removed"  # ... and the API was told to let go of it
    OVER = "over"  # it has failed or succeeded


class Place(Protocol):
    """The node a pod lives on, as the pod sees it."""

    name: str
    address: str
    shelf: Shelf
    slow: float

    @property
    def behaviour(self) -> Behaviour:
        """How long things take."""
        ...

    @property
    def images(self) -> ImageQuirks:
        """What is particular about images."""
        ...

    def wall(self) -> float:
        """The time of day."""
        ...


Tell = Callable[[Pod, str, str, str, bool], None]


class Resize:
    """A change of resources under way: done at a time, or refused."""

    __slots__ = ("done_at", "message", "reason", "wanted")

    def __init__(
        self,
        wanted: tuple[Resources, ...],
        done_at: float = NEVER,
        *,
        reason: str = "",
        message: str = "",
    ) -> None:
        self.wanted = wanted  # of each container
        self.done_at = done_at
        self.reason = reason  # Infeasible or Deferred, empty while in progress
        self.message = message


class Told:
    """What a condition was when it was last written."""

    __slots__ = ("explained", "since", "status")

    def __init__(self, status: str, since: str, *, explained: bool) -> None:
        self.status = status
        self.since = since
        self.explained = explained  # whether it has, or once had, a reason


class PodLife:
    """One pod from the moment its kubelet sees it."""

    __slots__ = (
        "_annotated",
        "_annotation",
        "_tell",
        "armed",
        "behaviour",
        "conditions",
        "containers",
        "course",
        "deadline",
        "failure",
        "generation",
        "init",
        "ip",
        "place",
        "pod",
        "resize",
        "shelf",
        "stale",
        "start_time",
        "started",
        "uid",
        "until",
        "writing",
        "written",
        "written_version",
    )

    def __init__(self, pod: Pod, place: Place, ip: str, *, tell: Tell) -> None:
        self.pod = pod
        self.uid = pod.uid
        self.place = place
        self.shelf = place.shelf
        self.behaviour = place.behaviour
        self.ip = ip
        self.course = Course.LIVING
        self.until = NEVER  # when something happens by itself
        self.deadline = NEVER  # when it is ended for having been active for too long
        self.started = seconds(pod.status.start_time) or place.wall()
        self.start_time = format_time(self.started)
        self.generation = pod.metadata.generation  # of the spec that the status speaks of
        self.failure: tuple[str, str] | None = None  # why the kubelet ended or refused it
        self.resize: Resize | None = None
        self.conditions: dict[str, Told] = {}  # by type
        self.stale = True  # whether the status may have to be written anew
        self.written = b""  # the status as last written, times aside
        self.written_version = 0
        self.writing = False
        self.armed = NEVER  # when a timer will look after it
        self._tell = tell
        self._annotation = ""
        self._annotated = NO_QUIRKS
        self._read_annotation()
        self.init = [ContainerLife(spec, self) for spec in pod.spec.init_containers]
        self.containers = [ContainerLife(spec, self) for spec in pod.spec.containers]

    # --- What containers know of their pod ------------------------------------------------------

    def wall(self) -> float:
        """The time of day."""
        return self.place.wall()

    def quirks(self, image: str) -> Quirks:
        """What is particular about an image in this pod."""
        return self._annotated.over(self.place.images.of(image))

    def pull_seconds(self, image: str) -> float:
        """Simulated seconds a pull takes."""
        said = self._annotated.pull
        return pull_seconds(image, self.behaviour, self.place.images) if said is None else said

    def real(self, simulated: float) -> float:
        """Real seconds that a simulated duration takes on this node."""
        return self.behaviour.scaled(simulated * self.place.slow)

    def restarts(self, exit_code: int) -> bool:
        """Whether the restart policy lets a container that ended so run again."""
        policy = self.pod.spec.restart_policy
        return policy == "Always" or (policy == "OnFailure" and exit_code != 0)

    def tell(self, reason: str, message: str, *, container: str, warning: bool = False) -> None:
        """Record an event about a container."""
        self._tell(self.pod, reason, message, f"spec.containers{{{container}}}", warning)

    def announce(self, reason: str, message: str) -> None:
        """Record a warning about the pod as a whole."""
        self._tell(self.pod, reason, message, "", True)

    # --- What happens to it ----------------------------------------------------------------------

    def resume(self, now: float) -> None:
        """Go on where an earlier life of the kubelet left off."""
        statuses = {status.name: status for status in self.pod.status.container_statuses}
        for condition in self.pod.status.conditions:
            since = format_time(seconds(condition.last_transition_time) or self.wall())
            told = Told(condition.status, since, explained=bool(condition.reason))
            self.conditions[condition.type] = told
        if self.pod.finished:
            self.course = Course.OVER
            return
        self._note_deadline(now)
        for life in self.containers:
            status = statuses.get(life.spec.name)
            if status is not None:
                life.resume(status, now)
        if any(life.running for life in self.containers):
            self._settle_init(now)

    def settle(self, now: float) -> None:
        """Have it run, as if it had come up earlier."""
        self._note_deadline(now)
        self._settle_init(now)
        for life in self.containers:
            life.settle(now)
        self._note_until()

    def _settle_init(self, now: float) -> None:
        for life in self.init:
            life.settle(now)
            if not _is_sidecar(life.spec):
                life.stop(now)

    def follow(self, pod: Pod, now: float) -> None:
        """Take over what was changed in the API."""
        before, self.pod = self.pod, pod
        if pod.spec.containers != before.spec.containers or (
            self.containers_ready and _gates_moved(before, pod)
        ):
            self.stale = True
        if self.course is not Course.LIVING:
            self._follow_end(now)
            return
        if pod.metadata.annotations.behaviour != self._annotation:
            self._read_annotation()
            self.reconsider(now)
        specs = {spec.name: spec for spec in pod.spec.containers}
        for life in self.containers:
            spec = specs.get(life.spec.name)
            if spec is not None:
                life.follow(spec, now)
        if pod.terminating:
            self._stop(now)
            return
        if self.generation != pod.metadata.generation:
            self.generation, self.stale = pod.metadata.generation, True
        self._note_deadline(now)
        self._note_until()

    def _follow_end(self, now: float) -> None:
        if self.course is Course.STOPPING:
            self._hurry(now)
        elif self.course is Course.OVER and self.pod.metadata.deletion_grace_period_seconds:
            self.course = Course.STOPPED  # deleted before the API knew that it was over
            self.stale = True

    def reconsider(self, now: float) -> None:
        """Take over changed quirks."""
        if self.course is Course.LIVING:
            self.stale = True
            for life in self.containers:
                life.reconsider(now)
            self._note_until()

    def advance(self, now: float) -> None:
        """Let everything happen that is due."""
        if self.until <= now:
            self.stale = True
        elif not self.stale:
            return  # nothing has changed, so nothing else happens either
        if self.course is Course.LIVING and self.deadline <= now:
            self.fail(now, *_TOO_LONG)
            self._tell(self.pod, *_TOO_LONG, "", False)
        elif self.course is Course.LIVING:
            self._advance_containers(now)
        elif self.course is Course.STOPPING and self.until <= now:
            for life in (*self.init, *self.containers):
                life.stop(now)
            self.course, self.until = Course.STOPPED, NEVER
            self.generation = self.pod.metadata.generation

    def fail(self, now: float, reason: str, message: str) -> None:
        """End it at once: refused, evicted or past its deadline."""
        for life in (*self.init, *self.containers):
            life.stop(now, exit_code=137)
        self.failure, self.course, self.until = (reason, message), Course.OVER, NEVER
        self.stale = True

    @property
    def initialized(self) -> bool:
        """Whether all init containers are done."""
        return all(_done(life) for life in self.init)

    @property
    def begun(self) -> bool:
        """Whether any container runs or ever ran."""
        return any(map(_ID, (*self.init, *self.containers)))

    @property
    def containers_ready(self) -> bool:
        """Whether all containers are ready; until then nobody asks for readiness gates."""
        return all(map(_READY, self.containers))

    @property
    def phase(self) -> str:
        """The phase that the containers add up to."""
        if self.failure is not None:
            return "Failed"
        if self.pod.finished and self.course is not Course.LIVING:
            return self.pod.status.phase  # for good, whoever wrote it
        if all(map(_OVER, self.containers)):
            if self.course is Course.STOPPED and not self.behaviour.final_phase:
                return "Running" if self.begun else "Pending"
            bad = any(life.end is None or life.end.exit_code for life in self.containers)
            return "Failed" if bad else "Succeeded"
        return "Running" if self.begun and self._all_created() else "Pending"

    def _all_created(self) -> bool:
        """A pod runs once all its containers were created and one of them runs or comes back."""
        return self.initialized and all(map(_ID, self.containers))

    def _advance_containers(self, now: float) -> None:
        # What has begun goes on, even if a sidecar before it ends and is waited for again.
        may_begin = True
        for life in self.init:
            if may_begin:
                life.begin(now)
            life.advance(now)
            self._end_init(life, now)
            may_begin = may_begin and _done(life)
        for life in self.containers:
            if may_begin:
                life.begin(now)
            life.advance(now)
        if self.containers and all(map(_OVER, self.containers)):
            self.course = Course.OVER
        self._advance_resize(now)
        self._note_until()

    def _end_init(self, life: ContainerLife, now: float) -> None:
        """An init container has done its work as soon as it has started."""
        if life.stage is not Stage.RUNNING or _is_sidecar(life.spec):
            return
        if self.quirks(life.image).fail not in ("crash", "probe"):
            life.stop(now)

    def _note_deadline(self, now: float) -> None:
        allowed = self.pod.spec.active_deadline_seconds
        if allowed is not None:
            self.deadline = now + self.started + self.behaviour.scaled(allowed) - self.wall()

    def _note_until(self) -> None:
        if self.course is not Course.LIVING:
            self.until = NEVER  # its deadline, too, is nothing to it any more
            return
        until = self.deadline if self.resize is None else min(self.deadline, self.resize.done_at)
        self.until = min((until, *map(_UNTIL, self.init), *map(_UNTIL, self.containers)))

    def _read_annotation(self) -> None:
        self._annotation = self.pod.metadata.annotations.behaviour
        try:
            self._annotated = parse_quirks(self._annotation)
        except BehaviourError as error:
            self._annotated = NO_QUIRKS
            self.announce("BadBehaviour", str(error))

    # --- Stopping --------------------------------------------------------------------------------

    def _stop(self, now: float) -> None:
        for life in self.containers:
            if life.running:
                what = f"Stopping container {life.spec.name}"
                self.tell("Killing", what, container=life.spec.name)
        self.course = Course.STOPPING
        self.until = now + self._stop_time()

    def _stop_time(self) -> float:
        lives = (*self.init, *self.containers)
        takes = self.real(max((life.stop_seconds() for life in lives), default=0.0))
        grace = self.pod.metadata.deletion_grace_period_seconds
        return takes if grace is None else min(takes, self.behaviour.scaled(grace))

    def _hurry(self, now: float) -> None:
        self.until = min(self.until, now + self._stop_time())

    # --- Resizing --------------------------------------------------------------------------------

    def resized(self) -> list[ContainerLife]:
        """The running containers whose resources are no longer what the spec says."""
        return [
            life
            for life in self.containers
            if life.stage is Stage.RUNNING and life.resources != life.spec.resources
        ]

    def wanted(self) -> tuple[Resources, ...]:
        """The resources that the spec asks for, of each container."""
        return tuple(life.spec.resources for life in self.containers)

    def begin_resize(self, now: float, refusal: tuple[str, str] | None) -> None:
        """Change the resources after a while, or say why not."""
        if refusal is None:
            self.resize = Resize(self.wanted(), now + self.real(self.behaviour.resize))
        else:
            reason, message = refusal
            self.resize = Resize(self.wanted(), reason=reason, message=message)
        self.stale = True
        self._note_until()

    def _advance_resize(self, now: float) -> None:
        if self.resize is None or self.resize.reason or self.resize.done_at > now:
            return
        for life in self.resized():
            if _needs_restart(life):
                life.restart(now)
            else:
                life.resources = life.spec.resources
        self.resize = None


def _done(init: ContainerLife) -> bool:
    if _is_sidecar(init.spec):
        return init.ready
    return init.over and (init.end is None or init.end.exit_code == 0)


def _is_sidecar(spec: Container) -> bool:
    return spec.restart_policy == "Always"


def _needs_restart(life: ContainerLife) -> bool:
    """Whether a resource changed that this container can only take over by a restart."""
    old, new = life.resources, life.spec.resources
    return any(
        _amounts(old, policy.resource_name) != _amounts(new, policy.resource_name)
        for policy in life.spec.resize_policy
        if policy.restart_policy == "RestartContainer"
    )


def _amounts(resources: Resources, name: str) -> tuple[object, object]:
    return resources.requests.get(name), resources.limits.get(name)


def _gates_moved(before: Pod, after: Pod) -> bool:
    """Whether others say something else of the readiness of a pod than before."""
    for gate in after.spec.readiness_gates:
        old, new = before.condition(gate.condition_type), after.condition(gate.condition_type)
        if (old and old.status) != (new and new.status):
            return True
    return False
