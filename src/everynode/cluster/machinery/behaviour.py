"""How long simulated things take, and which of them go wrong.

Durations are in simulated seconds; `speed` says how many of those pass in a real one. What goes
wrong is said by the image, from the weakest word to the strongest:

- by its name: an image whose name contains `non-existent` cannot be pulled, `crash-loop` ends with
  an error as soon as it runs, `never-ready` never passes its readiness probe, `run-once` ends well,
  `slow-start` needs thirty seconds to start;
- by a line `IMAGE WORDS` under the key `images` of the ConfigMap `kube-system/everynode-images`,
  where IMAGE may contain `*`;
- by the annotation `sim.everynode.io/behaviour: WORDS` of the pod, which its template can carry.

WORDS are `fail=pull|crash|probe|exit|stuck|none`, `pull=SECONDS`, `start=SECONDS`,
`ready=SECONDS` and `stop=SECONDS`, in any order. A container that is to change to a `stuck` image
goes on with the one it has.

A node is told by annotations: `sim.everynode.io/stopped: "true"` stops its kubelet,
`sim.everynode.io/slow: "5"` makes everything on it take five times as long,
`sim.everynode.io/not-ready: "true"` lets its kubelet report that it is not ready, and
`sim.everynode.io/pressure: memory` (or `disk`, `pid`) lets it report pressure and evict pods.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

import msgspec

FAILURES: Final = ("pull", "crash", "probe", "exit", "stuck", "none")
PRESSURES: Final = {"memory": "MemoryPressure", "disk": "DiskPressure", "pid": "PIDPressure"}
_DURATIONS: Final = ("pull", "start", "ready", "stop")
_LONGEST: Final = 86400.0


class BehaviourError(ValueError):
    """Words that say nothing about a behaviour; the message says what would."""


class Quirks(msgspec.Struct, frozen=True):
    """What is particular about an image or a pod; None and empty where nothing is."""

    fail: str = ""
    pull: float | None = None
    start: float | None = None
    ready: float | None = None
    stop: float | None = None

    def over(self, weaker: Quirks) -> Quirks:
        """These quirks, and the weaker ones where these say nothing."""
        return Quirks(
            self.fail or weaker.fail,
            weaker.pull if self.pull is None else self.pull,
            weaker.start if self.start is None else self.start,
            weaker.ready if self.ready is None else self.ready,
            weaker.stop if self.stop is None else self.stop,
        )


NO_QUIRKS: Final = Quirks()
_BY_NAME: Final = (
    ("non-existent", Quirks("pull")),
    ("crash-loop", Quirks("crash")),
    ("never-ready", Quirks("probe")),
    ("run-once", Quirks("exit")),
    ("slow-start", Quirks(start=30.0)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """How the whole cluster behaves."""

    speed: float = 1.0
    # A first pull of an image on a node takes something between these, the same on every node.
    pull: tuple[float, float] = (1.0, 2.0)
    start: float = 1.0  # from the image to the running container
    ready: float = 0.0  # from there, and from its probes' initial delays, to ready
    stop: float = 1.0
    resize: float = 1.0
    crash: float = 1.0  # how long a container lives that is to crash
    back_off: tuple[float, float] = (10.0, 300.0)  # of pulls and of crashed containers
    heartbeat_grace: float = 40.0  # until a silent node's state is Unknown
    eviction_pause: float = 10.0  # between two pods evicted under pressure
    orphan_grace: float = 40.0  # until pods of a vanished node are removed
    # Kubelets since 1.27 write Succeeded or Failed into a pod that ends because it was deleted;
    # kubectl then shows it as Completed instead of Terminating.
    final_phase: bool = False
    events: bool = True

    def scaled(self, simulated: float) -> float:
        """Real seconds that a simulated duration takes."""
        return simulated / self.speed

    def back_off_after(self, failures: int) -> float:
        """How long to wait after so many failures in a row."""
        first, longest = self.back_off
        return float(min(longest, first * 2 ** min(max(failures - 1, 0), 16)))


def parse_quirks(text: str) -> Quirks:
    """The quirks that some words describe; raises BehaviourError."""
    found: dict[str, str | float] = {}
    for word in text.split():
        key, equals, value = word.partition("=")
        if key == "fail" and value in FAILURES:
            found["fail"] = value
        elif key in _DURATIONS and equals:
            found[key] = parse_seconds(key, value)
        else:
            raise BehaviourError(
                f"{word!r} is not understood: use fail={'|'.join(FAILURES)}, "
                "pull=SECONDS, start=SECONDS, ready=SECONDS or stop=SECONDS"
            )
    return msgspec.convert(found, Quirks)


def parse_seconds(what: str, text: str) -> float:
    """A duration of at most a day; raises BehaviourError."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0.0 <= seconds <= _LONGEST:
        raise BehaviourError(f"{what}={text}: give seconds, from 0 to {_LONGEST:.0f}")
    return seconds


def parse_factor(text: str) -> float:
    """How many times as long everything takes on a slow node; 1 where that is not understood."""
    try:
        factor = float(text)
    except ValueError:
        return 1.0
    return factor if 0.001 <= factor <= 100_000 else 1.0


@dataclass(frozen=True, slots=True)
class ImageQuirks:
    """What was said of images while the cluster runs: patterns and their quirks, in order."""

    entries: tuple[tuple[str, Quirks], ...] = ()

    def of(self, image: str) -> Quirks:
        """The quirks of an image: the last line that names it, over what its name says."""
        said = NO_QUIRKS
        for pattern, quirks in self.entries:
            if pattern == image or ("*" in pattern and fnmatchcase(image, pattern)):
                said = quirks
        return said.over(by_name(image))


def by_name(image: str) -> Quirks:
    """What the name of an image says of it."""
    return next((quirks for word, quirks in _BY_NAME if word in image), NO_QUIRKS)


def parse_images(text: str) -> tuple[ImageQuirks, list[str]]:
    """The lines of the ConfigMap, and what is wrong with those that are left out."""
    entries, faults = [], []
    for line in text.splitlines():
        image, _, words = line.strip().partition(" ")
        if not image or image.startswith("#"):
            continue
        try:
            entries.append((image, parse_quirks(words)))
        except BehaviourError as error:
            faults.append(f"{image}: {error}")
    return ImageQuirks(tuple(entries)), faults
