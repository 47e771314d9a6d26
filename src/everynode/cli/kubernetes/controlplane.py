"""A real control plane on loopback: etcd, API server, scheduler, controller manager.

    async with ControlPlane() as plane:
        ...  # plane.url, plane.token, plane.ca_file, plane.kubeconfig, plane.pids

Everything it starts it stops, also when it fails to start, on Ctrl-C, and when this process is
killed. etcd listens on socket files in a private folder, all else on free ports of 127.0.0.1.
"""

from __future__ import annotations

import shutil
import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import aiohttp

from everynode.cli.kubernetes import binaries, processes
from everynode.cli.kubernetes.certificates import Certificates
from everynode.cli.kubernetes.components import (
    ADMIN_USER,
    API_SERVER,
    CONTROLLER_MANAGER,
    ETCD,
    ETCD_SOCKETS,
    SCHEDULER,
    Site,
    api_server_flags,
    controller_manager_flags,
    etcd_flags,
    scheduler_flags,
    tokens_in,
)
from everynode.cli.kubernetes.processes import FolderLock, Ports, Process, ProcessError
from everynode.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

ALL_BUT_DAEMONSETS = "*,-daemonset-controller"

_TICK = 0.1
_REQUEST_TIMEOUT = aiohttp.ClientTimeout(total=5.0)
_GRACE = 5.0

_clock = SystemClock()


@dataclass(frozen=True, kw_only=True)
class Options:
    """What to run."""

    # Where data, keys, kubeconfig and logs go, and stay; None: a temporary folder.
    folder: Path | None = None
    # The API server's port; 0: any free one.
    port: int = 0
    # The controller manager's controllers; None: no controller manager.
    controllers: str | None = ALL_BUT_DAEMONSETS
    scheduler: bool = True
    # Shall pods need a service account, and get its token mounted?
    service_accounts: bool = False
    # Added to the flags of a program: {"kube-apiserver": ["--max-requests-inflight=0"]}.
    extra_flags: Mapping[str, Sequence[str]] = field(default_factory=dict)
    # Seconds until everything must be ready.
    ready_within: float = 120.0

    @property
    def components(self) -> list[str]:
        """The programs to run, servers before their clients."""
        optional = {SCHEDULER: self.scheduler, CONTROLLER_MANAGER: self.controllers is not None}
        return [ETCD, API_SERVER, *(name for name, wanted in optional.items() if wanted)]


class ControlPlane:
    """A running control plane and how to reach it."""

    def __init__(self, options: Options | None = None) -> None:
        self.options = options or Options()
        self._processes: dict[str, Process] = {}
        self._site: Site | None = None
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
        return self._where.tokens[ADMIN_USER]

    @property
    def ca_file(self) -> Path:
        """The authority behind all serving certificates; the API server trusts it for clients."""
        return self._where.certificates.ca_file

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self._where.folder / "kubeconfig"

    @property
    def folder(self) -> Path:
        """Where data, keys, kubeconfig and logs are."""
        return self._where.folder

    @property
    def pids(self) -> dict[str, int]:
        """The process id of each program that was started."""
        pids = {name: process.pid for name, process in self._processes.items()}
        return {name: pid for name, pid in pids.items() if pid is not None}

    def url_of(self, name: str) -> str:
        """The address of a program, for its /metrics; the administrator's token opens it."""
        return self._where.url(name)

    def ssl_context(self) -> ssl.SSLContext:
        """For a client of any of the programs."""
        return ssl.create_default_context(cafile=str(self.ca_file))

    async def start(self) -> None:
        """Start everything and wait until it is ready; on failure nothing is left."""
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
            # Without etcd the others would only wait for it.
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
        """Wait until a program ends although nobody stopped it, and raise what it said last."""
        while True:
            self._require_running()
            await _clock.sleep(_TICK)

    @property
    def _where(self) -> Site:
        if self._site is None:
            raise ProcessError("the control plane was not started")
        return self._site

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
        site = self._site = Site(
            folder=folder,
            certificates=Certificates.in_folder(folder / "keys", _clock.now()),
            ports={name: ports.reserve(port) for name, port in wanted.items()},
            tokens=tokens_in(folder / "keys" / "tokens.csv", _clock.uid),
        )
        site.kubeconfig(ADMIN_USER)
        for name in options.components:
            argv = [
                str(programs / name),
                *self._flags(name, site),
                *options.extra_flags.get(name, ()),
            ]
            sockets = [folder / socket for socket in ETCD_SOCKETS] if name == ETCD else []
            log_file = folder / "logs" / f"{name}.log"
            self._processes[name] = Process(argv, folder, log_file, sockets)

    def _flags(self, name: str, site: Site) -> list[str]:
        if name == ETCD:
            return etcd_flags(site)
        if name == API_SERVER:
            return api_server_flags(site, service_accounts=self.options.service_accounts)
        if name == SCHEDULER:
            return scheduler_flags(site)
        return controller_manager_flags(site, self.options.controllers or "")

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
            for name, url in self._signs_of_life(names):
                while not await _answers(session, url):
                    self._require_running()
                    if _clock.monotonic() > deadline:
                        raise ProcessError(
                            f"{name} was not ready after {self.options.ready_within:.0f} s: no "
                            f"good answer from {url}. {self._processes[name].log_end()}"
                        )
                    await _clock.sleep(_TICK)

    def _signs_of_life(self, names: Sequence[str]) -> list[tuple[str, str]]:
        """What must answer, beside the program to blame if it does not."""
        signs = []
        if API_SERVER in names:
            # The namespaces of the system come a moment after the server calls itself ready.
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
