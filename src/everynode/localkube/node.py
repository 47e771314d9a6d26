"""Real node on this machine: kubelet with containerd and runc, joined to a control plane.

    async with RealNode(plane, images=[Image("example.test/agent:v1", ["sleep", "1d"])]) as node:
        ...  # pods whose image is there, with imagePullPolicy Never, really run

It needs root. Everything runs in Linux namespaces of its own, so that no process and no mount
outlives it, even when this process is killed. Cgroups, bridge and folder are removed at the end,
also when the start fails; those of a killed predecessor are removed at the start.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp

from everynode.clock import SystemClock
from everynode.localkube import binaries, node_cleanup, node_network, processes
from everynode.localkube.node_config import CNI_PLUGINS, PAUSE, NodeLayout
from everynode.localkube.node_images import Image, ImageArchive
from everynode.localkube.processes import ChildProcess, FolderLock, Ports, ProcessError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from everynode.localkube.control_plane import ControlPlane

_PROGRAMS = ("containerd", "ctr", "runc", "busybox", "ip", "unshare", "nsenter")
# Mount and PID namespaces of the node. Fixed paths that its programs write to are tmpfs mounts, and
# the shell that is process 1 reaps the containerd shims.
_NAMESPACES = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
_INIT_SCRIPT = """
for place in /run /var/lib /var/log; do mount -t tmpfs tmpfs $place || exit; done
containerd --config "$1" &
wait
"""
_PREFIX = "everynode-node-"
_READY_TIMEOUT = 90.0
_SHUTDOWN_SECONDS = 4  # no longer than logind waits by default, so that it is not configured anew
_TICK = 0.1
_TIMEOUT = aiohttp.ClientTimeout(total=5.0)

_clock = SystemClock()


class NodeImpossibleError(Exception):
    """This machine cannot run a real node; the message says what is missing."""


def require_node_support() -> None:
    """Raise NodeImpossibleError unless this machine can run a real node."""
    if os.geteuid() != 0:
        raise NodeImpossibleError("a real node needs root")
    binaries.find((*binaries.CONTROL_PLANE, *binaries.NODE))
    absent = [name for name in _PROGRAMS if shutil.which(name) is None]
    if not (CNI_PLUGINS / "bridge").exists():
        absent.append(str(CNI_PLUGINS / "bridge"))
    if absent:
        raise NodeImpossibleError(
            f"a real node needs {', '.join(absent)}: run hack/node/install (Debian, Ubuntu)"
        )
    if not node_cleanup.CGROUPS.is_dir():
        raise NodeImpossibleError(f"a real node needs cgroups at {node_cleanup.CGROUPS}")


class RealNode:
    """A running node."""

    def __init__(
        self,
        plane: ControlPlane,
        *,
        name: str = "real-node",
        images: Sequence[ImageArchive] = (),
        system_bus: Path | None = None,  # a D-Bus on which logind announces that it shuts down
    ) -> None:
        self.name = name
        self._plane = plane
        self._system_bus = system_bus
        self._images = (Image(PAUSE, ["/bin/sleep", "100000d"]), *images)
        self._lock = FolderLock()
        self._layout: NodeLayout | None = None
        self._containerd: ChildProcess | None = None
        self._kubelet: ChildProcess | None = None
        self._bridge: ChildProcess | None = None

    async def __aenter__(self) -> RealNode:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Start containerd, give it the images, start kubelet, wait until the node is Ready."""
        require_node_support()
        await node_cleanup.remove_abandoned_nodes(Path(tempfile.gettempdir()), _PREFIX)
        try:
            with Ports() as ports:
                self._prepare(ports)
                self._start_bridge()
                await self._start_containerd()
                self._import_images()
                await self._start_kubelet()
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Stop everything and leave nothing behind."""
        try:
            processes.kill(self._running)  # the kernel kills a PID namespace with its process 1
        finally:
            self._kubelet = self._containerd = self._bridge = None
            if self._layout is not None:
                await node_cleanup.remove_node(self._layout.folder, self._layout.tag)
                self._layout = None
            self._lock.release()

    def log_end(self) -> str:
        """The ends of the programs' logs."""
        return "\n".join(process.log_end() for process in self._running)

    @property
    def pod_logs(self) -> Path:
        """The folder of the logs of its pods, while it runs; the node has a /var of its own."""
        return Path(f"/proc/{self._init_pid()}/root/var/log/pods")

    @property
    def _running(self) -> list[ChildProcess]:
        started = (self._containerd, self._kubelet, self._bridge)
        return [process for process in started if process is not None]

    def _prepare(self, ports: Ports) -> None:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._lock.take(folder)
        tag = f"en-{_clock.name_suffix(8)}"
        node_cleanup.write_tag(folder, tag)
        kubelet = (ports.reserve(), ports.reserve())
        subnet = int(_clock.jitter(1, 255))
        self._layout = NodeLayout(
            folder,
            self._plane.certificates,
            self.name,
            tag,
            kubelet,
            subnet,
            _SHUTDOWN_SECONDS if self._system_bus else 0,
        )
        self._layout.write()
        node_cleanup.make_cgroup(tag)

    def _start_bridge(self) -> None:
        layout = self._running_layout
        node_network.make_bridge(layout.tag, layout.gateway)
        port = self._plane.url.rpartition(":")[2]
        argv = [sys.executable, "-m", node_network.__name__, layout.tag, port]
        self._bridge = self._process("bridge", argv)
        self._bridge.start()

    async def _start_containerd(self) -> None:
        layout = self._running_layout
        inside = ["sh", "-c", _INIT_SCRIPT, "sh", str(layout.folder / "containerd.toml")]
        self._containerd = self._process("containerd", [*_NAMESPACES, *inside])
        self._containerd.start()
        deadline = _clock.monotonic() + _READY_TIMEOUT
        while not self._ctr("version"):
            self._require_running()
            if _clock.monotonic() > deadline:
                raise ProcessError(f"containerd was not ready. {self._containerd.log_end()}")
            await _clock.sleep(_TICK)

    def _import_images(self) -> None:
        busybox = Path(str(shutil.which("busybox")))
        archive = self._running_layout.folder / "image.tar"
        for image in self._images:
            image.write(archive, busybox)
            if not self._ctr("images", "import", "--snapshotter", "native", str(archive)):
                raise ProcessError(f"containerd did not take the image {image.name}")
        archive.unlink()

    def _ctr(self, *arguments: str) -> bool:
        command = [
            "ctr",
            "--address",
            str(self._running_layout.socket),
            "--namespace",
            "k8s.io",
            *arguments,
        ]
        return subprocess.run(command, check=False, capture_output=True).returncode == 0

    async def _start_kubelet(self) -> None:
        layout = self._running_layout
        bus = self._system_bus
        argv = [
            *("nsenter", f"--target={self._init_pid()}", "--mount", "--pid"),
            *(("env", f"DBUS_SYSTEM_BUS_ADDRESS=unix:path={bus}") if bus else ()),
            str(binaries.find(binaries.NODE) / "kubelet"),
            f"--config={layout.folder / 'kubelet.yaml'}",
            f"--kubeconfig={self._plane.kubeconfig}",
            f"--root-dir={layout.kubelet_folder}",
            f"--cert-dir={layout.folder / 'keys'}",
            f"--hostname-override={layout.name}",
            "--cloud-provider=external",
        ]
        headers = {"Authorization": f"Bearer {self._plane.token}"}
        connector = aiohttp.TCPConnector(ssl=self._plane.ssl_context())
        async with aiohttp.ClientSession(
            connector=connector, headers=headers, timeout=_TIMEOUT
        ) as session:
            await self._register(session)
            self._kubelet = self._process("kubelet", argv)
            self._kubelet.start()
            await self._until_ready(session)

    async def _register(self, session: aiohttp.ClientSession) -> None:
        """Create the Node object, unless an earlier node of this name has left it."""
        body = self._running_layout.registration()
        async with session.post(f"{self._plane.url}/api/v1/nodes", json=body) as response:
            if response.status not in (201, 409):
                raise ProcessError(f"the node was not registered: {await response.text()}")

    def _process(self, name: str, argv: Sequence[str]) -> ChildProcess:
        folder = self._running_layout.folder
        program = str(shutil.which(argv[0]))
        process = ChildProcess([program, *argv[1:]], folder, folder / "logs" / f"{name}.log")
        process.name = name
        return process

    def _init_pid(self) -> int:
        """Process 1 of the namespace: the child of `unshare`."""
        parent = self._containerd.pid if self._containerd is not None else None
        return int(Path(f"/proc/{parent}/task/{parent}/children").read_text().split()[0])

    async def _until_ready(self, session: aiohttp.ClientSession) -> None:
        url = f"{self._plane.url}/api/v1/nodes/{self.name}"
        deadline = _clock.monotonic() + _READY_TIMEOUT
        while not await _is_ready(session, url):
            self._require_running()
            if _clock.monotonic() > deadline:
                raise ProcessError(f"the node was never Ready. {self.log_end()}")
            await _clock.sleep(_TICK)

    def _require_running(self) -> None:
        for process in self._running:
            process.require_running()

    @property
    def _running_layout(self) -> NodeLayout:
        if self._layout is None:
            raise ProcessError("the node was not started")
        return self._layout


async def _is_ready(session: aiohttp.ClientSession, url: str) -> bool:
    """Whether the node is Ready and its not-ready taint is removed."""
    try:
        async with session.get(url) as response:
            if response.status != 200:
                return False
            node = await response.json()
    except (aiohttp.ClientError, TimeoutError):
        return False
    conditions = node.get("status", {}).get("conditions", [])
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return ready and not node["spec"].get("taints")
