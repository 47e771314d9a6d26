"""Running API server: how to reach it, and which components it needs beside it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from everynode.components.run import ComponentOptions
from everynode.kube.transport import Transport


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A running API server, embedded or real."""

    url: str
    transport: Transport
    kubeconfig: dict[str, Any]  # with one cluster, one user and one context
    components: ComponentOptions
    broken: Callable[[], Awaitable[NoReturn]]  # waits, and raises when the server fails
