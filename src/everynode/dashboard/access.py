"""Access: the user of a request, and what that user may see."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, Generic, Protocol, TypeVar

from everynode.api.daemonset import DaemonSet, Flavour
from everynode.clock import Clock
from everynode.controller.informers import resource_of
from everynode.dashboard.guard import Refusal
from everynode.kube.client import Client
from everynode.kube.permissions import Permission, User, is_allowed, review_token
from everynode.kube.resources import EVENTS, NODES, PODS, REVISIONS, Resource

_MAX_TOKEN_CHARACTERS: Final = 16 * 1024  # those of service accounts have about one thousand
_KNOWN_SECONDS: Final = 60.0  # how long an answer of the API server is used again
_MAX_ANSWERS: Final = 4096
_CONCURRENT_REQUESTS: Final = 8
_HOW_TO_GET_A_TOKEN: Final = "make one with: kubectl create token NAME -n NAMESPACE --duration=1h"
K = TypeVar("K")
T = TypeVar("T")


class Viewer(Protocol):
    """The user of a request, and what that user may see."""

    # After this number of seconds a stream ends, and the page asks again; None: it need not.
    stream_seconds: float | None

    async def visible(self, sets: Sequence[DaemonSet]) -> list[DaemonSet]:
        """Return the sets that may be listed; raises Refusal if none may be listed."""
        ...

    async def check(self, flavour: Flavour, namespace: str, name: str) -> None:
        """Raise Refusal, which names the missing rights, unless the rollout may be seen."""
        ...

    async def missing_for_events(self, namespace: str) -> str:
        """Return the right that is missing to list events; empty if none is."""
        ...


class Access(Protocol):
    """How a request is matched to a viewer."""

    async def viewer(self, headers: Mapping[str, str]) -> Viewer:
        """Return the user of a request; raises Refusal."""
        ...


def bearer(headers: Mapping[str, str]) -> str:
    """Return the token of a request; empty without one."""
    scheme, _, token = headers.get("Authorization", "").partition(" ")
    token = token.strip()
    usable = token.isascii() and len(token) <= _MAX_TOKEN_CHARACTERS
    return token if scheme.lower() == "bearer" and usable else ""


class OwnRights:
    """The page of one user: all is asked with that user's rights, so the API server decides."""

    stream_seconds: float | None = None

    async def viewer(self, headers: Mapping[str, str]) -> Viewer:
        """Return the one viewer."""
        return self

    async def visible(self, sets: Sequence[DaemonSet]) -> list[DaemonSet]:
        """Return all sets: others were not delivered."""
        return list(sets)

    async def check(self, flavour: Flavour, namespace: str, name: str) -> None:
        """Refuse nothing."""

    async def missing_for_events(self, namespace: str) -> str:
        """Return nothing: the API server refuses the request itself."""
        return ""


class ReviewedRights:
    """The page in a cluster: what is shown was read with the controller's rights.

    The token of a viewer is reviewed by the API server, and every right of theirs that is needed
    to read the same.
    """

    def __init__(self, client: Client, clock: Clock, flavours: Sequence[Flavour]) -> None:
        self.flavours = flavours
        self._client = client
        self._users: Remembered[str, User | None] = Remembered(clock)
        self._allowed: Remembered[tuple[str, Permission], bool] = Remembered(clock)

    async def viewer(self, headers: Mapping[str, str]) -> Viewer:
        """Return the user whose token a request carries; raises Refusal without a valid one."""
        token = bearer(headers)
        if not token:
            raise Refusal(401, "sign in with a token of this cluster", _HOW_TO_GET_A_TOKEN)
        key = hashlib.sha256(token.encode()).hexdigest()
        user = await self._users.get(key, lambda: review_token(self._client, token))
        if user is None:
            raise Refusal(401, "the token is not valid, or not any more", _HOW_TO_GET_A_TOKEN)
        return ReviewedViewer(self, user)

    async def is_allowed(self, user: User, permission: Permission) -> bool:
        """Whether a user has a permission."""
        key = (repr(user), permission)
        return await self._allowed.get(key, lambda: is_allowed(self._client, permission, user))


class ReviewedViewer:
    """A user of the cluster, known by a token."""

    stream_seconds: float | None = _KNOWN_SECONDS

    def __init__(self, rights: ReviewedRights, user: User) -> None:
        self._rights = rights
        self._user = user
        self._slots = asyncio.Semaphore(_CONCURRENT_REQUESTS)

    async def visible(self, sets: Sequence[DaemonSet]) -> list[DaemonSet]:
        """Return the sets that the user may list, in all namespaces or in some."""
        flavours = self._rights.flavours
        everywhere = {each: await self._may(_listing(resource_of(each))) for each in flavours}
        places = sorted(
            {(ds.flavour, ds.namespace) for ds in sets if not everywhere[ds.flavour]},
            key=lambda place: (place[0].value, place[1]),
        )
        allowed = await asyncio.gather(
            *(self._may(_listing(resource_of(each), where)) for each, where in places)
        )
        seen = {place for place, may in zip(places, allowed, strict=True) if may}
        if not seen and not any(everywhere.values()):
            rights = " or ".join(str(_listing(resource_of(each))) for each in flavours)
            raise Refusal(
                403,
                f"user {self._user.user} may list DaemonSets in no namespace that has one",
                f"ask a cluster administrator for the right to {rights}, there or everywhere",
            )
        return [ds for ds in sets if everywhere[ds.flavour] or (ds.flavour, ds.namespace) in seen]

    async def check(self, flavour: Flavour, namespace: str, name: str) -> None:
        """Raise Refusal unless the user may read all that the page of a rollout shows."""
        kind = resource_of(flavour)
        wanted = [
            Permission(
                verb="get", group=kind.group, resource=kind.plural, namespace=namespace, name=name
            ),
            _listing(PODS, namespace),
            _listing(REVISIONS, namespace),
            _listing(NODES),
        ]
        allowed = await asyncio.gather(*(self._may(each) for each in wanted))
        missing = [str(each) for each, may in zip(wanted, allowed, strict=True) if not may]
        if missing:
            rights = ", ".join(missing)
            raise Refusal(
                403,
                f"user {self._user.user} lacks the right to {rights}",
                "ask a cluster administrator for it",
            )

    async def missing_for_events(self, namespace: str) -> str:
        """Return the right that the user lacks to list events; empty if none."""
        wanted = _listing(EVENTS, namespace)
        return "" if await self._may(wanted) else str(wanted)

    async def _may(self, permission: Permission) -> bool:
        async with self._slots:
            return await self._rights.is_allowed(self._user, permission)


def _listing(resource: Resource, namespace: str = "") -> Permission:
    return Permission(
        verb="list", group=resource.group, resource=resource.plural, namespace=namespace
    )


class Remembered(Generic[K, T]):
    """Answers that are used again for a minute; the oldest are forgotten when there are many."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[K, tuple[float, T]] = {}

    async def get(self, key: K, ask: Callable[[], Awaitable[T]]) -> T:
        """Return the answer, asked for anew when it is too old."""
        now = self._clock.monotonic()
        if key in self._known and self._known[key][0] > now:
            return self._known[key][1]
        answer = await ask()
        self._known.pop(key, None)
        while len(self._known) >= _MAX_ANSWERS:
            del self._known[next(iter(self._known))]
        self._known[key] = now + _KNOWN_SECONDS, answer
        return answer
