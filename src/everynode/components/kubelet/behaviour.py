"""Behaviour: how long simulated things take, and which of them fail.

Durations are in simulated seconds; `speed` is the number of simulated seconds per real second. An
image can differ from the cluster's behaviour, by (the later ones win):

- its name: an image whose name contains `non-existent` cannot be pulled, `crash-loop` ends with
  an error as soon as it runs, `never-ready` never passes its readiness probe, `run-once` exits
  with 0, `slow-start` needs thirty seconds to start;
- a line `IMAGE WORDS` under the key `images` of the ConfigMap `kube-system/everynode-images`,
  where IMAGE may contain `*`, and `on=NODE,NODE` among the words limits it to these nodes;
- the annotation `sim.everynode.io/behaviour: WORDS` of the pod, which its template can carry.

WORDS are `fail=pull|crash|probe|exit|stuck|none`, `pull=SECONDS`, `start=SECONDS`,
`ready=SECONDS` and `stop=SECONDS`, in any order. A running container whose image changes to a
`stuck` one keeps the image it has.

What annotations of a node do is in components/annotations.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

import msgspec

from everynode.backoff import Backoff

FAILURE_NAMES: Final = ("pull", "crash", "probe", "exit", "stuck", "none")
PRESSURES: Final = {"memory": "MemoryPressure", "disk": "DiskPressure", "pid": "PIDPressure"}
_DURATIONS: Final = ("pull", "start", "ready", "stop")
_MAX_SECONDS: Final = 86400.0
_ON: Final = "on="


class BehaviourError(ValueError):
    """A behaviour that cannot be parsed; the message says what is allowed."""


class BehaviourOverrides(msgspec.Struct, frozen=True):
    """Where an image or a pod differs from the cluster's behaviour; None or empty elsewhere."""

    fail: str = ""
    pull: float | None = None
    start: float | None = None
    ready: float | None = None
    stop: float | None = None

    def with_fallback(self, fallback: BehaviourOverrides) -> BehaviourOverrides:
        """These overrides, and those of `fallback` where these have none."""
        return BehaviourOverrides(
            self.fail or fallback.fail,
            fallback.pull if self.pull is None else self.pull,
            fallback.start if self.start is None else self.start,
            fallback.ready if self.ready is None else self.ready,
            fallback.stop if self.stop is None else self.stop,
        )


NO_OVERRIDES: Final = BehaviourOverrides()
_BY_NAME: Final = (
    ("non-existent", BehaviourOverrides("pull")),
    ("crash-loop", BehaviourOverrides("crash")),
    ("never-ready", BehaviourOverrides("probe")),
    ("run-once", BehaviourOverrides("exit")),
    ("slow-start", BehaviourOverrides(start=30.0)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """The behaviour of the whole cluster."""

    speed: float = 1.0
    # The first pull of an image on a node takes between these; the same image always the same.
    pull: tuple[float, float] = (1.0, 2.0)
    start: float = 1.0  # from the pulled image to the running container
    ready: float = 0.0  # from there to ready, in addition to its probes' initial delays
    stop: float = 1.0
    resize: float = 1.0
    boot: float = 20.0  # how long a node that reboots is silent
    crash: float = 1.0  # how long a crashing or exiting container runs
    back_off: tuple[float, float] = (10.0, 300.0)  # of pulls and of crashed containers
    heartbeat_grace: float = 40.0  # until a node without heartbeats becomes Unknown
    eviction_pause: float = 10.0  # between two pods evicted under pressure
    orphan_grace: float = 40.0  # until pods of a deleted node are removed
    # Kubelets since 1.27 write Succeeded or Failed into a pod that ends because it was deleted;
    # kubectl then shows it as Completed instead of Terminating.
    final_phase: bool = False
    events: bool = True
    # Whether images that are never pulled (pull policy Never) count as loaded onto every node.
    preloaded: bool = False

    def scaled(self, simulated: float) -> float:
        """Real seconds that a simulated duration takes."""
        return simulated / self.speed

    def back_off_after(self, failures: int) -> float:
        """Simulated seconds to wait after that number of failures in a row."""
        return Backoff(*self.back_off).delay(max(failures, 1))


def parse_overrides(text: str) -> BehaviourOverrides:
    """Parse `fail=crash start=5`; raises BehaviourError."""
    found: dict[str, str | float] = {}
    for word in text.split():
        key, equals, value = word.partition("=")
        if key == "fail" and value in FAILURE_NAMES:
            found["fail"] = value
        elif key in _DURATIONS and equals:
            found[key] = parse_seconds(key, value)
        else:
            raise BehaviourError(
                f"{word!r} is not understood: use fail={'|'.join(FAILURE_NAMES)}, "
                "pull=SECONDS, start=SECONDS, ready=SECONDS or stop=SECONDS"
            )
    return msgspec.convert(found, BehaviourOverrides)


def parse_seconds(name: str, text: str) -> float:
    """Parse a duration of at most a day; raises BehaviourError."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0.0 <= seconds <= _MAX_SECONDS:
        raise BehaviourError(f"{name}={text}: give seconds, from 0 to {_MAX_SECONDS:.0f}")
    return seconds


def parse_slow_factor(text: str) -> float:
    """The factor of a slow node's annotation; 1 if it is not a number between 0.001 and 100000."""
    try:
        factor = float(text)
    except ValueError:
        return 1.0
    return factor if 0.001 <= factor <= 100_000 else 1.0


def parse_clock_offset(text: str) -> float:
    """The seconds by which a node's clock is ahead; 0 if it is not a number of at most a day."""
    try:
        offset = float(text or "0")
    except ValueError:
        return 0.0
    return offset if abs(offset) <= 86_400 else 0.0


@dataclass(frozen=True, slots=True)
class ImageLine:
    """One line of the ConfigMap: an image pattern, its overrides, and the nodes; all if empty."""

    pattern: str
    overrides: BehaviourOverrides
    nodes: frozenset[str] = frozenset()

    def matches(self, image: str, node: str) -> bool:
        """Whether the line concerns an image on a node."""
        pattern = self.pattern
        named = pattern == image or ("*" in pattern and fnmatchcase(image, pattern))
        return named and (not self.nodes or node in self.nodes)


@dataclass(frozen=True, slots=True)
class ImageOverrides:
    """The ConfigMap's lines, in order."""

    lines: tuple[ImageLine, ...] = ()

    def of(self, image: str, node: str) -> BehaviourOverrides:
        """The overrides of an image: the last line that matches, then those of its name."""
        found = NO_OVERRIDES
        for line in self.lines:
            if line.matches(image, node):
                found = line.overrides
        return found.with_fallback(overrides_by_name(image))


def overrides_by_name(image: str) -> BehaviourOverrides:
    """The overrides that an image has by its name."""
    return next((overrides for word, overrides in _BY_NAME if word in image), NO_OVERRIDES)


def parse_images(text: str) -> tuple[ImageOverrides, list[str]]:
    """Parse the ConfigMap's lines: the valid ones, and an error for each of the others."""
    lines, errors = [], []
    for line in text.splitlines():
        image, *words = line.split() or [""]
        if not image or image.startswith("#"):
            continue
        nodes = [word for word in words if word.startswith(_ON)]
        others = " ".join(word for word in words if not word.startswith(_ON))
        names = frozenset(name for word in nodes for name in word[len(_ON) :].split(",") if name)
        try:
            if nodes and not names:
                raise BehaviourError(f"{nodes[0]!r} names no node: use {_ON}NODE,NODE")
            lines.append(ImageLine(image, parse_overrides(others), names))
        except BehaviourError as error:
            errors.append(f"{image}: {error}")
    return ImageOverrides(tuple(lines)), errors
