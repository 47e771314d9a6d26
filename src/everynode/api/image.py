"""Image references: expands short ones and compares them."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

_REGISTRY: Final = "docker.io"
_OFFICIAL: Final = "library"


@lru_cache(maxsize=1024)
def full_reference(image: str) -> str:
    """Return the reference with its registry, repository and tag or digest spelled out."""
    rest, at, digest = image.partition("@")
    head, slash, _ = rest.partition("/")
    # Only a first part with a dot or a port, or localhost, is a registry.
    if not slash or not (("." in head) or (":" in head) or head == "localhost"):
        rest = f"{_REGISTRY}/{rest}" if slash else f"{_REGISTRY}/{_OFFICIAL}/{rest}"
    elif head == "index.docker.io":
        rest = f"{_REGISTRY}/{rest.partition('/')[2]}"
    path, last = rest.rpartition("/")[::2]
    name, colon, tag = last.partition(":")
    if at:
        # Beside a digest, the tag has no effect.
        return f"{path}/{name}@{digest}"
    return f"{path}/{name}:{tag if colon else 'latest'}"


def repository(image: str) -> str:
    """Return the reference without tag and digest; a colon before the last slash is a port's."""
    path, slash, name = image.partition("@")[0].rpartition("/")
    return f"{path}{slash}{name.partition(':')[0]}"


def same_image(one: str, other: str) -> bool:
    """Whether both references mean the same repository at the same tag or digest."""
    return bool(one and other) and full_reference(one) == full_reference(other)
