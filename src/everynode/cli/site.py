"""An API server that serves: how to reach it, and what it needs from us."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from everynode.cluster.machinery.run import Options
from everynode.kube.transport import Transport


@dataclass(frozen=True, slots=True)
class Site:
    """A running API server."""

    url: str
    transport: Transport
    kubeconfig: dict[str, Any]  # with one cluster, one user and one context
    machinery: Options
    broken: Callable[[], Awaitable[NoReturn]]  # raises when it can serve no longer
