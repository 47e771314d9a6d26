"""Control plane on loopback: real etcd, API server, scheduler and controller manager.

    async with ControlPlane() as plane:
        ...  # plane.url, plane.token, plane.ca_file, plane.kubeconfig, plane.pids

It stops all programs that it started, also when a start fails, on Ctrl-C, and when this process is
killed. etcd listens on socket files in a private folder, the others on free ports of 127.0.0.1.
"""

from __future__ import annotations

import shutil
import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import aiohttp

from everynode.clock import SystemClock
from everynode.localkube import binaries, processes
from everynode.localkube.certificates import Certificates
from everynode.localkube.control_plane_config import (
    ADMIN_USER,
    API_SERVER,
    CONTROLLER_MANAGER,
    ETCD,
    ETCD_SOCKETS,
    SCHEDULER,
    ControlPlaneLayout,
    api_server_flags,
    controller_manager_flags,
    etcd_flags,
    load_or_create_tokens,
    scheduler_flags,
)
from everynode.localkube.processes import ChildProcess, FolderLock, Ports, ProcessError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

ALL_BUT_DAEMONSETS = "*,-daemonset-controller"

_TICK = 0.1
_REQUEST_TIMEOUT = aiohttp.ClientTimeout(total=5.0)
_GRACE = 5.0

_clock = SystemClock()


@dataclass(frozen=True, kw_only=True)
class ControlPlaneOptions:
    """Which programs to run, and how."""

    # Keeps data, keys, kubeconfig and logs; None: a temporary folder.
    folder: Path | None = None
    # The API server's port; 0: any free one.
    port: int = 0
    # The controller manager's controllers; None: no controller manager.
    controllers: str | None = ALL_BUT_DAEMONSETS
    scheduler: bool = True
    # Whether pods need a service account and get its token mounted.
    service_accounts: bool = False
    # Added to the flags of a program: {"kube-apiserver": ["--max-requests-inflight=0"]}.
    extra_flags: Mapping[str, Sequence[str]] = field(default_factory=dict)
    # Programs that are not those of the current release: {"kube-apiserver": Path("…")}.
    other_programs: Mapping[str, Path] = field(default_factory=dict)
    # Seconds until everything must be ready.
    ready_within: float = 120.0

    @property
    def components(self) -> list[str]:
        """The programs to run, servers before their clients."""
        optional = {SCHEDULER: self.scheduler, CONTROLLER_MANAGER: self.controllers is not None}
        return [ETCD, API_SERVER, *(name for name, wanted in optional.items() if wanted)]


class ControlPlane:
    """A running control plane and how to reach it."""

    def __init__(self, options: ControlPlaneOptions | None = None) -> None:
        self.options = options or ControlPlaneOptions()
        self._processes: dict[str, ChildProcess] = {}
        self._layout: ControlPlaneLayout | None = None
        self._temporary: Path | None = None
        self._lock = FolderLock()

    async def __aenter__(self) -> ControlPlane:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()

    @property
    def url(self) -> str:
        """The address of the API server."""
        return self.url_of(API_SERVER)

    @property
    def token(self) -> str:
        """The bearer token of the administrator."""
        return self._running_layout.tokens[ADMIN_USER]

    @property
    def certificates(self) -> Certificates:
        """The files of its CA and of what that signed."""
        return self._running_layout.certificates

    @property
    def ca_file(self) -> Path:
        """The CA of all serving certificates, which the API server also trusts for clients."""
        return self.certificates.ca_file

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self._running_layout.folder / "kubeconfig"

    @property
    def folder(self) -> Path:
        """Where data, keys, kubeconfig and logs are."""
        return self._running_layout.folder

    @property
    def pids(self) -> dict[str, int]:
        """The process id of each program that was started."""
        pids = {name: process.pid for name, process in self._processes.items()}
        return {name: pid for name, pid in pids.items() if pid is not None}

    def url_of(self, name: str) -> str:
        """The URL of a program, for its /metrics; needs the administrator's token."""
        return self._running_layout.url(name)

    def ssl_context(self) -> ssl.SSLContext:
        """For a client of any of the programs."""
        return ssl.create_default_context(cafile=str(self.ca_file))

    async def start(self) -> None:
        """Start everything and wait until it is ready; stops everything on failure."""
        try:
            with Ports() as ports:
                self._prepare(ports)
                await self._start_all()
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Stop everything, clients before servers, and remove a temporary folder."""
        try:
            # If etcd has died, the others would wait for it until they are killed.
            grace = _GRACE if ETCD in self._processes and self._processes[ETCD].running else 0.0
            for names in ((SCHEDULER, CONTROLLER_MANAGER), (API_SERVER,), (ETCD,)):
                listed = [self._processes[name] for name in names if name in self._processes]
                await processes.stop(listed, grace)
        finally:
            processes.kill(self._processes.values())
            if self._temporary is not None:
                shutil.rmtree(self._temporary, ignore_errors=True)
                self._temporary = None
            self._lock.release()

    async def restart(self, name: str) -> None:
        """Kill one program, start it again at the same address, wait until all is ready."""
        processes.kill([self._processes[name]])
        self._processes[name].start()
        await self._until_ready(self.options.components)

    async def broken(self) -> NoReturn:
        """Wait until a program ends unexpectedly, and raise an error with the end of its log."""
        while True:
            self._require_running()
            await _clock.sleep(_TICK)

    @property
    def _running_layout(self) -> ControlPlaneLayout:
        if self._layout is None:
            raise ProcessError("the control plane was not started")
        return self._layout

    def _prepare(self, ports: Ports) -> None:
        options = self.options
        programs = binaries.find(options.components)
        if options.folder is None:
            folder = self._temporary = Path(tempfile.mkdtemp(prefix="everynode-kubernetes-"))
        else:
            folder = options.folder.absolute()
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock.take(folder)
        wanted = dict.fromkeys(options.components[1:], 0) | {API_SERVER: options.port}
        layout = self._layout = ControlPlaneLayout(
            folder=folder,
            certificates=Certificates.in_folder(folder / "keys", _clock.now()),
            ports={name: ports.reserve(port) for name, port in wanted.items()},
            tokens=load_or_create_tokens(folder / "keys" / "tokens.csv", _clock.uid),
        )
        layout.kubeconfig(ADMIN_USER)
        for name in options.components:
            argv = [
                str(options.other_programs.get(name, programs / name)),
                *self._flags(name, layout),
                *options.extra_flags.get(name, ()),
            ]
            sockets = [folder / socket for socket in ETCD_SOCKETS] if name == ETCD else []
            log_file = folder / "logs" / f"{name}.log"
            self._processes[name] = ChildProcess(argv, folder, log_file, sockets)

    def _flags(self, name: str, layout: ControlPlaneLayout) -> list[str]:
        if name == ETCD:
            return etcd_flags(layout)
        if name == API_SERVER:
            return api_server_flags(layout, service_accounts=self.options.service_accounts)
        if name == SCHEDULER:
            return scheduler_flags(layout)
        return controller_manager_flags(layout, self.options.controllers or "")

    async def _start_all(self) -> None:
        servers, clients = self.options.components[:2], self.options.components[2:]
        for names in (servers, clients):
            for name in names:
                self._processes[name].start()
            await self._until_ready(names)

    async def _until_ready(self, names: Sequence[str]) -> None:
        deadline = _clock.monotonic() + self.options.ready_within
        connector = aiohttp.TCPConnector(ssl=self.ssl_context())
        headers = {"Authorization": f"Bearer {self.token}"}
        async with aiohttp.ClientSession(
            connector=connector, headers=headers, timeout=_REQUEST_TIMEOUT
        ) as session:
            for name, url in self._readiness_urls(names):
                while not await _answers(session, url):
                    self._require_running()
                    if _clock.monotonic() > deadline:
                        raise ProcessError(
                            f"{name} was not ready after {self.options.ready_within:.0f} s: no "
                            f"good answer from {url}. {self._processes[name].log_end()}"
                        )
                    await _clock.sleep(_TICK)

    def _readiness_urls(self, names: Sequence[str]) -> list[tuple[str, str]]:
        """The URLs that must answer, each with the program that the error names otherwise."""
        signs = []
        if API_SERVER in names:
            # The server creates its namespaces shortly after /readyz succeeds.
            namespace = f"{self.url}/api/v1/namespaces/default"
            signs += [(API_SERVER, f"{self.url}/readyz"), (API_SERVER, namespace)]
        for name in (SCHEDULER, CONTROLLER_MANAGER):
            if name in names:
                signs.append((name, f"{self.url_of(name)}/healthz"))
        if CONTROLLER_MANAGER in names and self.options.service_accounts:
            account = f"{self.url}/api/v1/namespaces/default/serviceaccounts/default"
            signs.append((CONTROLLER_MANAGER, account))
        return signs

    def _require_running(self) -> None:
        for process in self._processes.values():
            process.require_running()


async def _answers(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(url) as response:
            return response.status == 200
    except (aiohttp.ClientError, TimeoutError):
        return False
