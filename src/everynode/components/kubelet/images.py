"""Images: their ids, which ones a node has, and how long a pull takes."""

from __future__ import annotations

import hashlib
from functools import lru_cache

from everynode.api.image import repository
from everynode.components.kubelet.behaviour import Behaviour, ImageOverrides


@lru_cache(maxsize=4096)
def image_id(image: str) -> str:
    """The imageID that a container runtime reports: repository and digest."""
    name, at, digest = image.partition("@")
    return f"{repository(image)}@{digest if at else f'sha256:{_digest(name)}'}"


@lru_cache(maxsize=4096)
def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def container_id(uid: str, name: str, restart_count: int) -> str:
    """The containerID of one run of a container."""
    digest = hashlib.sha256(f"{uid}/{name}/{restart_count}".encode()).hexdigest()
    return f"containerd://{digest}"


class ImageStore:
    """The images that one node has pulled."""

    __slots__ = ("_images",)

    def __init__(self) -> None:
        self._images: dict[str, None] = {}

    def __contains__(self, image: str) -> bool:
        return image in self._images

    def add(self, image: str) -> None:
        """The image was pulled."""
        self._images[image] = None


def pull_seconds(image: str, node: str, behaviour: Behaviour, overrides: ImageOverrides) -> float:
    """Simulated seconds of the first pull of an image on a node; by default the same on all."""
    override = overrides.of(image, node).pull
    if override is not None:
        return override
    low, high = behaviour.pull
    return low + (high - low) * int(_digest(image)[:8], 16) / 0xFFFFFFFF
