"""Leader election by a Lease: at most one process writes, and stops before another begins.

The guarantee, for a lease of 15 seconds renewed every 2: a renewal sent at T keeps all other
processes from leading until T + 15 at least, because they count from when they see it. We begin no
write later than T + 10, and its server-side timeout ends at T + 14 at the latest. So the last write
of one leader is over before the first of the next, unless the network delays a request by more than
the margin: the server counts its timeout from the arrival of the request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

import msgspec
from msgspec.structs import replace

from everynode.api.keys import FIELD_MANAGER
from everynode.api.objects import Lease
from everynode.api.times import format_micro_time
from everynode.clock import Clock
from everynode.kube import verbs
from everynode.kube.client import WRITE_SECONDS, Client
from everynode.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from everynode.kube.requests import Request
from everynode.kube.resources import LEASES
from everynode.kube.transport import Transport
from everynode.log import Log

_MARGIN: Final = 1.0  # seconds, for clocks of different speed and for the network
_MAX_LEASE_SECONDS: Final = 3600  # a longer leaseDurationSeconds of another holder is cut
_MAX_TRANSITIONS: Final = 2**31 - 1  # int32: the API server refuses more
_LEASE_WRITE_SECONDS: Final = 5.0  # the API server may take for a write of the lease
_decode: Final = msgspec.json.Decoder(Lease).decode
log: Final = Log("leader")


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """Duration, renew deadline and retry period of a lease, in seconds."""

    duration: float = 15.0
    deadline: float = 10.0
    retry: float = 2.0

    def __post_init__(self) -> None:
        if not self.duration - _MARGIN > self.deadline > self.retry > 0:
            raise ValueError(
                "a lease must last more than a second longer than its renew deadline, "
                "and that longer than the retry period"
            )


class Leadership(Protocol):
    """The right to write."""

    def write_budget_seconds(self) -> float:
        """Return how many seconds a write begun now may take; zero when none may begin."""
        ...

    async def elected(self) -> None:
        """Wait until we lead."""
        ...

    async def lost(self) -> None:
        """Wait until we lead no longer."""
        ...

    async def run(self) -> None:
        """Acquire and renew the lead until it is resigned."""
        ...

    async def resign(self, settle: Callable[[], Awaitable[None]]) -> None:
        """Release the lead as soon as each of our writes has its response or has expired."""
        ...


class AlwaysLeader:
    """Leadership without election: this is the only controller process."""

    def __init__(self) -> None:
        self._resigned = asyncio.Event()

    def write_budget_seconds(self) -> float:
        """Return the full time for every write, until we resign; zero afterwards."""
        return 0.0 if self._resigned.is_set() else WRITE_SECONDS

    async def elected(self) -> None:
        """Return at once: we lead from the start."""

    async def lost(self) -> None:
        """Wait until we resign; the lead is not lost otherwise."""
        await self._resigned.wait()

    async def run(self) -> None:
        """Wait until we resign; there is nothing to renew."""
        await self._resigned.wait()

    async def resign(self, settle: Callable[[], Awaitable[None]]) -> None:
        """Stop writing; there is no successor that has to wait for our last writes."""
        self._resigned.set()


class Election:
    """Leadership by a Lease, as in all Kubernetes controllers.

    The identity must be one that no process had before: an earlier process with the same identity
    may still have writes under way.
    """

    def __init__(
        self,
        transport: Transport,
        clock: Clock,
        *,
        identity: str,
        namespace: str,
        name: str = "everynode",
        terms: LeaseTimes | None = None,
    ) -> None:
        # A separate client: the lease is written even while no other write is permitted.
        self._client = Client(transport, clock, write_budget=lambda: _LEASE_WRITE_SECONDS)
        self._clock = clock
        self._identity = identity
        self._namespace, self._name = namespace, name
        self._terms = terms or LeaseTimes()
        self._lease: Lease | None = None  # as last read or written
        self._seen_at = 0.0  # when its holder was last seen alive
        self._renewed: tuple[float, float] | None = None  # monotonic and wall, of our renewal
        self._resigning = False
        self._leading = asyncio.Event()
        self._following = asyncio.Event()
        self._following.set()
        self._stopped = False
        self._one_at_a_time = asyncio.Lock()
        self._trouble = ""
        self._reported_holder = ""

    @property
    def holder(self) -> str:
        """The identity that holds the lease, as last read."""
        return self._lease.spec.holder_identity if self._lease else ""

    def write_budget_seconds(self) -> float:
        """Return how many seconds a write begun now may take; zero when none may begin."""
        age = self._age()
        if self._resigning or not self._leading.is_set() or age > self._terms.deadline:
            return 0.0
        return min(WRITE_SECONDS, self._terms.duration - _MARGIN - age)

    async def elected(self) -> None:
        """Wait until we lead."""
        await self._leading.wait()

    async def lost(self) -> None:
        """Wait until we lead no longer."""
        await self._following.wait()

    async def run(self) -> None:
        """Acquire and renew the lead until it is resigned."""
        while not self._stopped:
            try:
                async with self._one_at_a_time:
                    await self._seek_or_keep()
                self._report("")
            except KubeError as error:
                # The renewal may have been stored; only one with a response counts.
                self._report(str(error))
            if self._leading.is_set() and self._age() > self._terms.deadline:
                self._step_down("the lease could not be renewed in time")
            await self._pause()

    async def resign(self, settle: Callable[[], Awaitable[None]]) -> None:
        """Release the lead as soon as each of our writes has its response or has expired.

        The lease is kept meanwhile: a successor must not begin before our last write is over.
        """
        self._resigning = True
        await settle()
        self._stopped = True
        async with self._one_at_a_time:
            if self._leading.is_set():
                await self._release()
                self._step_down("resigned")

    # --- Acquiring and renewing ----------------------------------------------------------------

    async def _seek_or_keep(self) -> None:
        if self._stopped or (self._resigning and not self._leading.is_set()):
            return
        if self._lease is None or self._lease.spec.holder_identity != self._identity:
            await self._read_lease()
        if self._lease is None:
            await self._create()
        elif self._is_free():
            await self._take(self._lease)

    async def _read_lease(self) -> None:
        request = verbs.get(LEASES, self._name, namespace=self._namespace)
        before = self._lease
        try:
            request = replace(request, timeout=_LEASE_WRITE_SECONDS)
            self._lease = await self._client.read(request, _decode, attempts=1)
        except NotFound:
            self._lease = None
        holder = self.holder
        if self._lease is not None and (
            before is None or _version(self._lease) != _version(before)
        ):
            self._seen_at = self._clock.monotonic()
        if self._leading.is_set() and holder != self._identity:
            self._step_down(f"the lease was taken by {holder or 'no process'}")
        if holder not in (self._reported_holder, self._identity):
            log.info("Waiting for the lease", holder=holder or "none")
        self._reported_holder = holder

    def _is_free(self) -> bool:
        assert self._lease is not None
        spec = self._lease.spec
        if spec.holder_identity in ("", self._identity):
            return True
        # Counted from when we saw it change: the holder's clock may be wrong.
        patience = max(min(spec.lease_duration_seconds, _MAX_LEASE_SECONDS), self._terms.duration)
        return self._clock.monotonic() - self._seen_at > patience

    async def _create(self) -> None:
        body = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {"name": self._name, "namespace": self._namespace},
            "spec": self._spec(transitions=0, new=True),
        }
        request = verbs.create(LEASES, body, namespace=self._namespace, manager=FIELD_MANAGER)
        try:
            await self._write(request)
        except AlreadyExists:
            return  # another process was first; read the lease again

    async def _take(self, lease: Lease) -> None:
        new = lease.spec.holder_identity != self._identity
        transitions = min(max(lease.spec.lease_transitions, 0) + new, _MAX_TRANSITIONS)
        spec = self._spec(transitions=transitions, new=new)
        try:
            await self._write(self._patch(lease, spec))
        except (Conflict, NotFound):
            await self._read_lease()  # another process took, changed or deleted it

    async def _write(self, request: Request) -> None:
        began = self._clock.monotonic(), self._clock.now()
        self._lease = await self._client.write(request, _decode)
        self._renewed = began
        if not self._leading.is_set() and not self._resigning:
            log.info("Leading", identity=self._identity)
            self._following.clear()
            self._leading.set()

    async def _release(self) -> None:
        if self._lease is None:
            return
        # Null rather than empty: newer API servers refuse an empty holderIdentity.
        spec = {"holderIdentity": None, "leaseDurationSeconds": 1}
        try:
            await self._client.write(self._patch(self._lease, spec), _decode)
        except KubeError as error:
            log.warning("Lease not released, it will expire", error=error)

    # --- Inside --------------------------------------------------------------------------------

    def _patch(self, lease: Lease, spec: dict[str, Any]) -> Request:
        precondition = {"resourceVersion": _version(lease), "uid": lease.metadata.uid}
        body = {"metadata": precondition, "spec": spec}
        return verbs.patch(
            LEASES, self._name, body, namespace=self._namespace, manager=FIELD_MANAGER
        )

    def _spec(self, *, transitions: int, new: bool) -> dict[str, Any]:
        now = format_micro_time(self._clock.now())
        spec: dict[str, Any] = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": int(self._terms.duration),
            "renewTime": now,
        }
        return spec | {"acquireTime": now, "leaseTransitions": transitions} if new else spec

    def _age(self) -> float:
        """Return how old our last renewal may be.

        The wall clock counts too: the monotonic clock stops while a machine is suspended.
        """
        if self._renewed is None:
            return float("inf")
        monotonic, wall = self._renewed
        return max(self._clock.monotonic() - monotonic, self._clock.now() - wall)

    def _step_down(self, why: str) -> None:
        write = log.info if self._resigning else log.warning
        write("No longer leading", because=why)
        self._renewed = None
        self._leading.clear()
        self._following.set()

    def _report(self, trouble: str) -> None:
        if trouble and trouble != self._trouble:
            log.warning("Lease trouble, trying again", error=trouble)
        self._trouble = trouble

    async def _pause(self) -> None:
        # Followers add jitter, so that they do not all send requests when a lease ends.
        retry = self._terms.retry
        spread = retry if self._leading.is_set() else self._clock.jitter(retry / 2, retry)
        await self._clock.sleep(spread)


def _version(lease: Lease) -> str:
    return lease.metadata.resource_version
