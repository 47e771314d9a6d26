"""Simulated container: pull, start, ready, crash, back-off, restart, stop."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final, Protocol

from everynode.api.objects import ContainerStatus, Resources, StateTerminated
from everynode.api.times import format_time, seconds
from everynode.components.kubelet.behaviour import Behaviour, BehaviourOverrides
from everynode.components.kubelet.images import ImageStore, container_id
from everynode.components.objects import FullContainer
from everynode.components.timers import NEVER

_LOST_EXIT_CODE: Final = 255  # what containerd reports of a container that a reboot ended
NEVER_PULL: Final = "ErrImageNeverPull"


class ContainerPhase(enum.Enum):
    """What a container is doing; each state but NEW and ENDED lasts until `due_at`."""

    NEW = "new"
    PULLING = "pulling"
    PULL_FAILED = "pull failed"
    PULL_BACK_OFF = "waiting to pull again"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"  # to run again with another image
    BACK_OFF = "waiting to restart"
    ENDED = "ended"


class ContainerEnvironment(Protocol):
    """The pod and node of a container, as far as the container uses them."""

    uid: str
    image_store: ImageStore
    behaviour: Behaviour

    def wall_time(self) -> float:
        """The time of day."""
        ...

    def overrides(self, image: str) -> BehaviourOverrides:
        """The behaviour of an image in this pod, where it differs from the cluster's."""
        ...

    def pull_seconds(self, image: str) -> float:
        """Simulated seconds a pull takes."""
        ...

    def real_seconds(self, simulated: float) -> float:
        """Real seconds that a simulated duration takes here."""
        ...

    def restarts_after(self, exit_code: int) -> bool:
        """Whether the restart policy runs a container again that ended with this code."""
        ...

    def record_event(
        self, reason: str, message: str, *, container: str, warning: bool = False
    ) -> None:
        """Record an event about the container."""
        ...


@dataclass(slots=True)
class Termination:
    """How a run of a container ended: the `terminated` state."""

    container_id: str
    started_at: str
    finished_at: str
    exit_code: int = 0

    @property
    def reason(self) -> str:
        """The reason in the container status."""
        return "Completed" if self.exit_code == 0 else "Error"


def _read_termination(ended: StateTerminated) -> Termination:
    started, finished = (seconds(each) or 0.0 for each in (ended.started_at, ended.finished_at))
    return Termination(
        ended.container_id, format_time(started), format_time(finished), ended.exit_code
    )


class SimulatedContainer:
    """One container of a pod, over all its runs."""

    __slots__ = (
        "_crashes",
        "_exit_at",
        "_pull_failures",
        "_ready_at",
        "due_at",
        "id",
        "image",
        "last_termination",
        "pod",
        "ready",
        "resources",
        "restart_count",
        "spec",
        "started_at",
        "state",
        "termination",
        "waiting",
    )

    def __init__(self, spec: FullContainer, pod: ContainerEnvironment) -> None:
        self.spec = spec
        self.pod = pod
        self.state = ContainerPhase.NEW
        self.due_at = NEVER  # when `advance` has something to do
        self.image = spec.image  # of the current run, or of the one being prepared
        self.resources: Resources = spec.resources
        self.id = ""
        self.started_at = ""
        self.restart_count = 0
        self.ready = False
        self.termination: Termination | None = None  # of the last run, until the next starts
        self.last_termination: Termination | None = None  # of the run before this one: lastState
        self.waiting: tuple[str, str] | None = None  # reason and message of the `waiting` state
        self._pull_failures = 0
        self._crashes = 0
        self._ready_at = NEVER
        self._exit_at = NEVER

    @property
    def running(self) -> bool:
        """Whether the container has a process."""
        return self.state in (ContainerPhase.RUNNING, ContainerPhase.STOPPING)

    @property
    def ended(self) -> bool:
        """Whether it has ended and will not run again."""
        return self.state is ContainerPhase.ENDED

    def resume(self, status: ContainerStatus, now: float) -> None:
        """Continue from the status that an earlier run of the kubelet has written."""
        self.restart_count = status.restart_count
        self.id = status.container_id
        ended = status.last_state.terminated
        self.last_termination = _read_termination(ended) if ended is not None else None
        if status.state.running is None:
            return
        self.image = status.image
        self.resources = status.resources or self.spec.resources
        self.started_at = format_time(seconds(status.state.running.started_at) or 0.0)
        self.state = ContainerPhase.RUNNING
        self.pod.image_store.add(self.image)
        self.ready = status.ready
        self._schedule_ready_and_exit(now)
        self._set_due_at(now)

    def set_running(self, now: float) -> None:
        """Make it running and ready at once, as if it had been started earlier."""
        self.pod.image_store.add(self.image)
        self.id = container_id(self.pod.uid, self.spec.name, self.restart_count)
        self.started_at = format_time(self.pod.wall_time())
        self.state, self.ready = ContainerPhase.RUNNING, True
        self._schedule_ready_and_exit(now)
        self._set_due_at(now)

    def update(self, spec: FullContainer, now: float) -> None:
        """The spec has changed: a new image restarts the container."""
        changed = spec.image != self.spec.image
        self.spec = spec
        if not changed and spec.image == self.image:
            return
        match self.state:
            case ContainerPhase.RUNNING if self.pod.overrides(spec.image).fail == "stuck":
                pass
            case ContainerPhase.RUNNING:
                self.restart(now)
            case ContainerPhase.NEW | ContainerPhase.STOPPING | ContainerPhase.ENDED:
                pass  # the next run, if there is one, takes the new image
            case _:
                self._restart_from_pull(now)

    def overrides_changed(self, now: float) -> None:
        """The behaviour of images has changed: act now instead of after a long back-off."""
        match self.state:
            case ContainerPhase.RUNNING if self.spec.image != self.image:
                self.update(self.spec, now)
            case ContainerPhase.RUNNING:
                self.ready = self.ready and self._overrides().fail != "probe"
                self._schedule_ready_and_exit(now)
                self._set_due_at(now)
            case (
                ContainerPhase.PULL_FAILED | ContainerPhase.PULL_BACK_OFF | ContainerPhase.BACK_OFF
            ):
                self._restart_from_pull(now)
            case _:
                pass

    def restart(self, now: float) -> None:
        """Stop the current run; the next one follows."""
        message = f"Container {self.spec.name} definition changed, will be restarted"
        self.pod.record_event("Killing", message, container=self.spec.name)
        self.ready = False
        self._ready_at = self._exit_at = NEVER
        self.state = ContainerPhase.STOPPING
        self.due_at = now + self.pod.real_seconds(self._stop_seconds())

    def restart_after_boot(self, now: float) -> None:
        """The node has rebooted: the run, or what was prepared for it, is lost."""
        if self.state in (ContainerPhase.NEW, ContainerPhase.ENDED):
            return
        if self.running:
            self._record_termination(now, _LOST_EXIT_CODE)
            if not self.pod.restarts_after(_LOST_EXIT_CODE):
                self.state, self.due_at = ContainerPhase.ENDED, NEVER
                return
        self._restart_from_pull(now)

    def advance(self, now: float) -> None:
        """Do everything that is due."""
        while self.due_at <= now:
            match self.state:
                case ContainerPhase.PULLING:
                    self._finish_pull(now)
                case ContainerPhase.PULL_FAILED:
                    self._start_pull_back_off(now)
                case ContainerPhase.PULL_BACK_OFF:
                    self._pull(now)
                case ContainerPhase.STARTING:
                    self._finish_start(now)
                case ContainerPhase.RUNNING:
                    self._advance_running(now)
                case ContainerPhase.STOPPING:
                    self._record_termination(now, 0)
                    self._pull(now)
                case ContainerPhase.BACK_OFF:
                    self._pull(now)
                case ContainerPhase.NEW | ContainerPhase.ENDED:
                    self.due_at = NEVER

    def start(self, now: float) -> None:
        """Start it for the first time; later calls do nothing."""
        if self.state is ContainerPhase.NEW:
            self._pull(now)

    def stop(self, now: float, exit_code: int = 0) -> None:
        """End it now; it will not run again."""
        if self.running:
            self._record_termination(now, exit_code)
        self.state, self.due_at, self.ready = ContainerPhase.ENDED, NEVER, False

    def termination_seconds(self) -> float:
        """Simulated seconds until it has stopped, its preStop hook included."""
        hook = self.spec.lifecycle.pre_stop
        hook_seconds = hook.sleep.seconds if hook is not None and hook.sleep is not None else 0
        return hook_seconds + self._stop_seconds() if self.running else 0.0

    # --- Inside --------------------------------------------------------------------------------

    def _overrides(self) -> BehaviourOverrides:
        return self.pod.overrides(self.image)

    def _stop_seconds(self) -> float:
        override = self._overrides().stop
        return self.pod.behaviour.stop if override is None else override

    def _restart_from_pull(self, now: float) -> None:
        self._pull_failures = self._crashes = 0
        self._pull(now)

    def _pull(self, now: float) -> None:
        image = self.image = self.spec.image
        here = image in self.pod.image_store
        policy = self.spec.image_pull_policy
        if policy == "Never" and not here and not self.pod.behaviour.preloaded:
            error = f'Container image "{image}" is not present with pull policy of Never'
            self._pull_failed(now, NEVER_PULL, error)
            return
        if policy == "Never" or (here and policy != "Always"):
            message = f'Container image "{image}" already present on machine'
            self.pod.record_event("Pulled", message, container=self.spec.name)
            self._start(now)
            return
        self.pod.record_event("Pulling", f'Pulling image "{image}"', container=self.spec.name)
        self.state = ContainerPhase.PULLING
        self.due_at = now + (0.0 if here else self.pod.real_seconds(self.pod.pull_seconds(image)))

    def _finish_pull(self, now: float) -> None:
        if self._overrides().fail == "pull":
            error = (
                f'failed to pull and unpack image "{self.image}": failed to resolve reference '
                f'"{self.image}": not found'
            )
            self._pull_failed(now, "ErrImagePull", error)
            return
        self.pod.image_store.add(self.image)
        message = f'Successfully pulled image "{self.image}"'
        self.pod.record_event("Pulled", message, container=self.spec.name)
        self._pull_failures = 0
        self._start(now)

    def _pull_failed(self, now: float, reason: str, error: str) -> None:
        record, image = self.pod.record_event, self.image
        message = f'Failed to pull image "{image}": {error}'
        record("Failed", message, container=self.spec.name, warning=True)
        record("Failed", f"Error: {reason}", container=self.spec.name, warning=True)
        self._pull_failures += 1
        self.state, self.waiting = ContainerPhase.PULL_FAILED, (reason, error)
        self.due_at = now + self.pod.real_seconds(self._pull_back_off_seconds() / 2)

    def _start_pull_back_off(self, now: float) -> None:
        if self.waiting is not None and self.waiting[0] == NEVER_PULL:
            self._pull(now)
            return
        message = f'Back-off pulling image "{self.image}"'
        self.pod.record_event("BackOff", message, container=self.spec.name)
        self.state, self.waiting = ContainerPhase.PULL_BACK_OFF, ("ImagePullBackOff", message)
        self.due_at = now + self.pod.real_seconds(self._pull_back_off_seconds() / 2)

    def _pull_back_off_seconds(self) -> float:
        return self.pod.behaviour.back_off_after(self._pull_failures)

    def _start(self, now: float) -> None:
        override = self._overrides().start
        self.state = ContainerPhase.STARTING
        takes = self.pod.behaviour.start if override is None else override
        self.due_at = now + self.pod.real_seconds(takes)

    def _finish_start(self, now: float) -> None:
        if self.id:
            self.restart_count += 1
        self.last_termination, self.termination = self.termination or self.last_termination, None
        self.waiting = None
        self.id = container_id(self.pod.uid, self.spec.name, self.restart_count)
        self.started_at = format_time(self.pod.wall_time())
        self.resources = self.spec.resources
        self.state = ContainerPhase.RUNNING
        name = self.spec.name
        self.pod.record_event("Created", f"Container created: {name}", container=name)
        self.pod.record_event("Started", f"Container started: {name}", container=name)
        self._schedule_ready_and_exit(now)
        self._set_due_at(now)

    def _schedule_ready_and_exit(self, now: float) -> None:
        """Compute when it becomes ready, and when it crashes or exits."""
        overrides, behaviour = self._overrides(), self.pod.behaviour
        self._ready_at = self._exit_at = NEVER
        if overrides.fail in ("crash", "exit"):
            self._exit_at = now + self.pod.real_seconds(behaviour.crash)
        if overrides.fail == "probe":
            message = "Readiness probe failed: simulated"
            self.pod.record_event("Unhealthy", message, container=self.spec.name, warning=True)
        elif not self.ready:
            takes = behaviour.ready if overrides.ready is None else overrides.ready
            probes = (self.spec.startup_probe, self.spec.readiness_probe)
            takes += sum(probe.initial_delay_seconds for probe in probes if probe is not None)
            self._ready_at = now + self.pod.real_seconds(takes)

    def _set_due_at(self, now: float) -> None:
        if self._ready_at <= now:
            self.ready, self._ready_at = True, NEVER
        self.due_at = min(self._ready_at, self._exit_at)

    def _advance_running(self, now: float) -> None:
        if self._exit_at > now:
            self._set_due_at(now)
            return
        code = 1 if self._overrides().fail == "crash" else 0
        self._record_termination(now, code)
        if not self.pod.restarts_after(code):
            self.state, self.due_at = ContainerPhase.ENDED, NEVER
            return
        self._crashes += 1
        # After its first crash a container is restarted at once.
        if self._crashes == 1:
            self._pull(now)
            return
        pause = self.pod.behaviour.back_off_after(self._crashes - 1)
        name = self.spec.name
        error = f"back-off {pause:.0f}s restarting failed container={name}"
        self.waiting = ("CrashLoopBackOff", error)
        message = f"Back-off restarting failed container {name}"
        self.pod.record_event("BackOff", message, container=name, warning=True)
        self.state = ContainerPhase.BACK_OFF
        self.due_at = now + self.pod.real_seconds(pause)

    def _record_termination(self, now: float, exit_code: int) -> None:
        finished = format_time(self.pod.wall_time())
        self.termination = Termination(self.id, self.started_at, finished, exit_code)
        self.ready = False
        self._ready_at = self._exit_at = NEVER
