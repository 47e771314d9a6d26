"""EmbeddedCluster: the cluster of `everynode up` inside a Python program (docs/python.md)."""

from __future__ import annotations

import asyncio
import json
import math
import string
import tempfile
from concurrent.futures import Future
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Self

from everynode.apiserver.server import Server
from everynode.clock import SystemClock
from everynode.components.kubelet.behaviour import Behaviour
from everynode.components.kubelet.registration import MAX_NODES
from everynode.components.run import ComponentOptions, Components
from everynode.controller.run import Controller, ControllerOptions
from everynode.private_files import write_private_file


class EmbeddedCluster:
    """A cluster of simulated nodes with Everynode's controller for both kinds of DaemonSets.

    It runs in a thread of its own from the beginning of a `with` block to its end, keeps everything
    in memory and listens on 127.0.0.1. Every client of Kubernetes can use its `kubeconfig`.
    """

    def __init__(
        self, *, nodes: int = 3, speed: float = 1.0, zones: int = 3, controller: bool = True
    ) -> None:
        """Prepare a cluster; `speed` is how many times faster than in reality pods start and stop.

        With `controller=False` the DaemonSets are left to a controller of yours.
        """
        if not 0 <= nodes <= MAX_NODES:
            raise ValueError(f"nodes is {nodes}: give a number from 0 to {MAX_NODES}")
        if not 0.001 <= speed <= 10_000 or math.isnan(speed):
            raise ValueError(f"speed is {speed}: give a number from 0.001 to 10000")
        if not 1 <= zones <= len(string.ascii_lowercase):
            raise ValueError(f"zones is {zones}: give a number from 1 to 26")
        self._components = ComponentOptions(
            nodes=nodes,
            zones=tuple(f"zone-{letter}" for letter in string.ascii_lowercase[:zones]),
            behaviour=Behaviour(speed=speed),
        )
        self._controller = controller
        self._running: _Running | None = None

    def __enter__(self) -> Self:
        """Start the cluster; returns when every node is registered."""
        if self._running is not None:
            raise RuntimeError("this EmbeddedCluster runs already: make another one")
        self._running = _Running(self._components, controller=self._controller)
        try:
            self._running.start()
        except BaseException:
            self._running = None
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the cluster; all that was in it is gone."""
        running, self._running = self._require_running(), None
        running.stop()

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig file; it exists while the cluster runs."""
        return self._require_running().kubeconfig

    @property
    def url(self) -> str:
        """The URL of the API server."""
        return self._require_running().url

    def _require_running(self) -> _Running:
        if self._running is None:
            raise RuntimeError("the cluster does not run: use it inside `with EmbeddedCluster()`")
        return self._running


class _Running:
    """The thread of a cluster, and the folder of its kubeconfig."""

    def __init__(self, components: ComponentOptions, *, controller: bool) -> None:
        self.url = ""
        self._components = components
        self._controller = controller
        self._folder = tempfile.TemporaryDirectory(prefix="everynode-")
        self.kubeconfig = Path(self._folder.name) / "kubeconfig"
        self._ready: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[None]]] = Future()
        self._ended: Future[None] = Future()
        self._thread = Thread(target=self._work, name="everynode", daemon=True)

    def start(self) -> None:
        """Wait until the nodes are registered; raises what went wrong."""
        self._thread.start()
        try:
            self._ready.result()
        except BaseException:
            self._folder.cleanup()
            raise

    def stop(self) -> None:
        """End the thread and remove the kubeconfig; raises what has ended the cluster before."""
        loop, task = self._ready.result()
        if not self._ended.done():
            loop.call_soon_threadsafe(task.cancel)
        self._thread.join()
        self._folder.cleanup()
        self._ended.result()

    def _work(self) -> None:
        try:
            asyncio.run(self._serve())
        except asyncio.CancelledError:
            self._ended.set_result(None)
        except BaseException as error:
            (self._ended if self._ready.done() else self._ready).set_exception(error)

    async def _serve(self) -> None:
        """Run server, nodes and controller until cancelled."""
        clock = SystemClock()
        server = Server(clock=clock)
        await server.start()
        try:
            write_private_file(self.kubeconfig, json.dumps(server.kubeconfig()).encode())
            self.url = server.url
            components = Components(server.transport, clock, self._components)
            async with asyncio.TaskGroup() as group:
                group.create_task(components.run())
                if self._controller:
                    options = ControllerOptions(native=True)
                    group.create_task(Controller(server.transport, clock, options).run())
                await components.ready()
                task = asyncio.current_task()
                assert task is not None
                self._ready.set_result((asyncio.get_running_loop(), task))
        finally:
            await server.stop()
