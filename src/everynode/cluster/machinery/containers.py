"""The life of one simulated container: pulled, started, ready, crashed, restarted, stopped."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final, Protocol

from everynode.api.objects import ContainerStatus, Resources
from everynode.api.times import format_time, seconds
from everynode.cluster.machinery.behaviour import Behaviour, Quirks
from everynode.cluster.machinery.images import Shelf, container_id
from everynode.cluster.machinery.objects import Container
from everynode.cluster.machinery.timers import NEVER

NEVER_PULL: Final = "ErrImageNeverPull"


class Stage(enum.Enum):
    """Where a container is."""

    NEW = "new"
    PULLING = "pulling"
    PULL_FAILED = "pull failed"
    PULL_BACK_OFF = "waiting to pull again"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"  # to run again with another image
    BACK_OFF = "waiting to restart"
    ENDED = "ended"


class Surroundings(Protocol):
    """What a container knows of its pod and node."""

    uid: str
    shelf: Shelf
    behaviour: Behaviour

    def wall(self) -> float:
        """The time of day."""
        ...

    def quirks(self, image: str) -> Quirks:
        """What is particular about an image in this pod."""
        ...

    def pull_seconds(self, image: str) -> float:
        """Simulated seconds a pull takes."""
        ...

    def real(self, simulated: float) -> float:
        """Real seconds that a simulated duration takes here."""
        ...

    def restarts(self, exit_code: int) -> bool:
        """Whether the pod's restart policy lets a container that ended so run again."""
        ...

    def tell(self, reason: str, message: str, *, container: str, warning: bool = False) -> None:
        """Record an event about the container."""
        ...


@dataclass(slots=True)
class End:
    """How a run of a container ended."""

    container_id: str
    started_at: str
    finished_at: str
    exit_code: int = 0

    @property
    def reason(self) -> str:
        """The one word for it."""
        return "Completed" if self.exit_code == 0 else "Error"


class ContainerLife:
    """One container over all its runs."""

    __slots__ = (
        "_crashes",
        "_exit_at",
        "_pull_failures",
        "_ready_at",
        "around",
        "end",
        "id",
        "image",
        "previous",
        "ready",
        "resources",
        "restarts",
        "spec",
        "stage",
        "started_at",
        "until",
        "waiting",
    )

    def __init__(self, spec: Container, around: Surroundings) -> None:
        self.spec = spec
        self.around = around
        self.stage = Stage.NEW
        self.until = NEVER  # when something happens by itself
        self.image = spec.image  # of the present run, or the one being prepared
        self.resources: Resources = spec.resources
        self.id = ""
        self.started_at = ""
        self.restarts = 0
        self.ready = False
        self.end: End | None = None  # of the last run, while none follows
        self.previous: End | None = None  # of the run before this one
        self.waiting: tuple[str, str] | None = None  # reason and message of what keeps it
        self._pull_failures = 0
        self._crashes = 0
        self._ready_at = NEVER
        self._exit_at = NEVER

    @property
    def running(self) -> bool:
        """Whether there is a process."""
        return self.stage in (Stage.RUNNING, Stage.STOPPING)

    @property
    def over(self) -> bool:
        """Whether it has ended for good."""
        return self.stage is Stage.ENDED

    def resume(self, status: ContainerStatus, now: float) -> None:
        """Go on where an earlier life of the kubelet left off."""
        self.restarts = status.restart_count
        self.id = status.container_id
        if status.state.running is None:
            return
        self.image = status.image
        self.resources = status.resources or self.spec.resources
        self.started_at = format_time(seconds(status.state.running.started_at) or 0.0)
        self.stage = Stage.RUNNING
        self.around.shelf.put(self.image)
        self.ready = status.ready
        self._plan(now)
        self._note_until(now)

    def settle(self, now: float) -> None:
        """Have it running and ready, as if it had come up earlier."""
        self.around.shelf.put(self.image)
        self.id = container_id(self.around.uid, self.spec.name, self.restarts)
        self.started_at = format_time(self.around.wall())
        self.stage, self.ready = Stage.RUNNING, True
        self._plan(now)
        self._note_until(now)

    def follow(self, spec: Container, now: float) -> None:
        """Take over a changed definition: another image means another run."""
        changed = spec.image != self.spec.image
        self.spec = spec
        if not changed and spec.image == self.image:
            return
        match self.stage:
            case Stage.RUNNING if self.around.quirks(spec.image).fail == "stuck":
                pass
            case Stage.RUNNING:
                self.restart(now)
            case Stage.NEW | Stage.STOPPING | Stage.ENDED:
                pass  # the next run, if there is one, finds the new image
            case _:
                self._begin_anew(now)

    def reconsider(self, now: float) -> None:
        """Take over changed quirks at once, instead of at the end of a long back-off."""
        match self.stage:
            case Stage.RUNNING if self.spec.image != self.image:
                self.follow(self.spec, now)
            case Stage.RUNNING:
                self.ready = self.ready and self._quirks().fail != "probe"
                self._plan(now)
                self._note_until(now)
            case Stage.PULL_FAILED | Stage.PULL_BACK_OFF | Stage.BACK_OFF:
                self._begin_anew(now)
            case _:
                pass

    def restart(self, now: float) -> None:
        """Stop the present run so that another can begin."""
        what = f"Container {self.spec.name} definition changed, will be restarted"
        self.around.tell("Killing", what, container=self.spec.name)
        self.ready = False
        self._ready_at = self._exit_at = NEVER
        self.stage = Stage.STOPPING
        self.until = now + self.around.real(self._stop_seconds())

    def advance(self, now: float) -> None:
        """Let everything happen that is due."""
        while self.until <= now:
            match self.stage:
                case Stage.PULLING:
                    self._pulled(now)
                case Stage.PULL_FAILED:
                    self._back_off_pull(now)
                case Stage.PULL_BACK_OFF:
                    self._pull(now)
                case Stage.STARTING:
                    self._started(now)
                case Stage.RUNNING:
                    self._live(now)
                case Stage.STOPPING:
                    self._finish(now, 0)
                    self._pull(now)
                case Stage.BACK_OFF:
                    self._pull(now)
                case Stage.NEW | Stage.ENDED:
                    self.until = NEVER

    def begin(self, now: float) -> None:
        """Start it for the first time."""
        if self.stage is Stage.NEW:
            self._pull(now)

    def stop(self, now: float, exit_code: int = 0) -> None:
        """End it now, for good."""
        if self.running:
            self._finish(now, exit_code)
        self.stage, self.until, self.ready = Stage.ENDED, NEVER, False

    def stop_seconds(self) -> float:
        """Simulated seconds until it has stopped, its hook included."""
        hook = self.spec.lifecycle.pre_stop
        waits = hook.sleep.seconds if hook is not None and hook.sleep is not None else 0
        return waits + self._stop_seconds() if self.running else 0.0

    # --- Inside --------------------------------------------------------------------------------

    def _quirks(self) -> Quirks:
        return self.around.quirks(self.image)

    def _stop_seconds(self) -> float:
        said = self._quirks().stop
        return self.around.behaviour.stop if said is None else said

    def _begin_anew(self, now: float) -> None:
        self._pull_failures = self._crashes = 0
        self._pull(now)

    def _pull(self, now: float) -> None:
        image = self.image = self.spec.image
        here = image in self.around.shelf
        policy = self.spec.image_pull_policy
        if policy == "Never" and not here:
            why = f'Container image "{image}" is not present with pull policy of Never'
            self._fail_pull(now, NEVER_PULL, why)
            return
        if here and policy != "Always":
            what = f'Container image "{image}" already present on machine'
            self.around.tell("Pulled", what, container=self.spec.name)
            self._start(now)
            return
        self.around.tell("Pulling", f'Pulling image "{image}"', container=self.spec.name)
        self.stage = Stage.PULLING
        self.until = now + (0.0 if here else self.around.real(self.around.pull_seconds(image)))

    def _pulled(self, now: float) -> None:
        if self._quirks().fail == "pull":
            why = (
                f'failed to pull and unpack image "{self.image}": failed to resolve reference '
                f'"{self.image}": not found'
            )
            self._fail_pull(now, "ErrImagePull", why)
            return
        self.around.shelf.put(self.image)
        what = f'Successfully pulled image "{self.image}"'
        self.around.tell("Pulled", what, container=self.spec.name)
        self._pull_failures = 0
        self._start(now)

    def _fail_pull(self, now: float, reason: str, why: str) -> None:
        tell, image = self.around.tell, self.image
        what = f'Failed to pull image "{image}": {why}'
        tell("Failed", what, container=self.spec.name, warning=True)
        tell("Failed", f"Error: {reason}", container=self.spec.name, warning=True)
        self._pull_failures += 1
        self.stage, self.waiting = Stage.PULL_FAILED, (reason, why)
        self.until = now + self.around.real(self._pull_pause() / 2)

    def _back_off_pull(self, now: float) -> None:
        if self.waiting is not None and self.waiting[0] == NEVER_PULL:
            self._pull(now)
            return
        what = f'Back-off pulling image "{self.image}"'
        self.around.tell("BackOff", what, container=self.spec.name)
        self.stage, self.waiting = Stage.PULL_BACK_OFF, ("ImagePullBackOff", what)
        self.until = now + self.around.real(self._pull_pause() / 2)

    def _pull_pause(self) -> float:
        return self.around.behaviour.back_off_after(self._pull_failures)

    def _start(self, now: float) -> None:
        said = self._quirks().start
        self.stage = Stage.STARTING
        takes = self.around.behaviour.start if said is None else said
        self.until = now + self.around.real(takes)

    def _started(self, now: float) -> None:
        if self.id:
            self.restarts += 1
        self.previous, self.end = self.end or self.previous, None
        self.waiting = None
        self.id = container_id(self.around.uid, self.spec.name, self.restarts)
        self.started_at = format_time(self.around.wall())
        self.resources = self.spec.resources
        self.stage = Stage.RUNNING
        name = self.spec.name
        self.around.tell("Created", f"Container created: {name}", container=name)
        self.around.tell("Started", f"Container started: {name}", container=name)
        self._plan(now)
        self._note_until(now)

    def _plan(self, now: float) -> None:
        """When it will be ready, and when it will end by itself."""
        quirks, behaviour = self._quirks(), self.around.behaviour
        self._ready_at = self._exit_at = NEVER
        if quirks.fail in ("crash", "exit"):
            self._exit_at = now + self.around.real(behaviour.crash)
        if quirks.fail == "probe":
            what = "Readiness probe failed: simulated"
            self.around.tell("Unhealthy", what, container=self.spec.name, warning=True)
        elif not self.ready:
            takes = behaviour.ready if quirks.ready is None else quirks.ready
            probes = (self.spec.startup_probe, self.spec.readiness_probe)
            takes += sum(probe.initial_delay_seconds for probe in probes if probe is not None)
            self._ready_at = now + self.around.real(takes)

    def _note_until(self, now: float) -> None:
        if self._ready_at <= now:
            self.ready, self._ready_at = True, NEVER
        self.until = min(self._ready_at, self._exit_at)

    def _live(self, now: float) -> None:
        if self._exit_at > now:
            self._note_until(now)
            return
        code = 1 if self._quirks().fail == "crash" else 0
        self._finish(now, code)
        if not self.around.restarts(code):
            self.stage, self.until = Stage.ENDED, NEVER
            return
        self._crashes += 1
        # The first time a container is started again at once.
        if self._crashes == 1:
            self._pull(now)
            return
        pause = self.around.behaviour.back_off_after(self._crashes - 1)
        name = self.spec.name
        why = f"back-off {pause:.0f}s restarting failed container={name}"
        self.waiting = ("CrashLoopBackOff", why)
        what = f"Back-off restarting failed container {name}"
        self.around.tell("BackOff", what, container=name, warning=True)
        self.stage = Stage.BACK_OFF
        self.until = now + self.around.real(pause)

    def _finish(self, now: float, exit_code: int) -> None:
        finished = format_time(self.around.wall())
        self.end = End(self.id, self.started_at, finished, exit_code)
        self.ready = False
        self._ready_at = self._exit_at = NEVER
