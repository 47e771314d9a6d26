"""What an image is to a node: its id, whether it is there, and how long it takes to come."""

from __future__ import annotations

import hashlib
from functools import lru_cache

from everynode.cluster.machinery.behaviour import Behaviour, ImageQuirks


@lru_cache(maxsize=4096)
def image_id(image: str) -> str:
    """The id a container runtime gives an image: its repository and a digest."""
    name, at, digest = image.partition("@")
    return f"{_repository(name)}@{digest if at else f'sha256:{_digest(name)}'}"


def _repository(name: str) -> str:
    """The name without its tag; a colon before the last slash belongs to a port."""
    head, slash, tail = name.rpartition("/")
    return f"{head}{slash}{tail.partition(':')[0]}"


@lru_cache(maxsize=4096)
def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def container_id(uid: str, name: str, restarts: int) -> str:
    """The id of one run of a container."""
    digest = hashlib.sha256(f"{uid}/{name}/{restarts}".encode()).hexdigest()
    return f"containerd://{digest}"


class Shelf:
    """The images that are on one node."""

    __slots__ = ("_images",)

    def __init__(self) -> None:
        self._images: dict[str, None] = {}

    def __contains__(self, image: str) -> bool:
        return image in self._images

    def put(self, image: str) -> None:
        """The image was pulled."""
        self._images[image] = None


def pull_seconds(image: str, behaviour: Behaviour, quirks: ImageQuirks) -> float:
    """Simulated seconds until a node has pulled an image it does not have."""
    said = quirks.of(image).pull
    if said is not None:
        return said
    low, high = behaviour.pull
    return low + (high - low) * int(_digest(image)[:8], 16) / 0xFFFFFFFF
