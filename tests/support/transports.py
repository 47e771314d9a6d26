"""Transports for controller tests: one enforces the role's permissions, one can be killed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from everynode.apiserver.transport.local import CompleteResponse
from everynode.install.rbac import OWN_NAMESPACE_RULES, PolicyRule, rules
from everynode.kube.requests import Request, Response
from everynode.kube.transport import Stream, Transport, TransportError

_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class Access(NamedTuple):
    """One verb on one resource that a role can permit."""

    group: str
    resource: str  # with its subresource, as in RBAC rules
    verb: str


def access_of(request: Request) -> Access:
    """What a role must permit for a request to pass."""
    parts = request.path.strip("/").split("/")
    group, rest = (parts[1], parts[3:]) if parts[0] == "apis" else ("", parts[2:])
    if rest[0] == "namespaces" and len(rest) > 2:
        rest = rest[2:]
    resource, name, subresource = (*rest, "", "")[:3]
    if request.method != "GET":
        verb = _VERBS[request.method]
    elif ("watch", "true") in request.query:
        verb = "watch"
    else:
        verb = "get" if name else "list"
    return Access(group, f"{resource}/{subresource}" if subresource else resource, verb)


def granted(
    given: Iterable[PolicyRule] = (*rules(native=True), *OWN_NAMESPACE_RULES),
) -> set[Access]:
    """Everything that rules permit."""
    return {Access(rule.group, rule.resource, verb) for rule in given for verb in rule.verbs}


class Permitted:
    """Refuses, as RBAC would, what a role does not permit, and records the rest.

    The role is the controller's unless another one is given.
    """

    def __init__(self, inner: Transport, given: set[Access] | None = None) -> None:
        self._inner = inner
        self._granted = granted() if given is None else given
        self.used: set[Access] = set()
        self.refused: list[Access] = []

    async def send(self, request: Request) -> Response:
        if not self._permits(request):
            return Response(403, _forbidden(request))
        return await self._inner.send(request)

    async def open(self, request: Request) -> Stream:
        self._permits(request)
        return await self._inner.open(request)

    async def close(self) -> None:
        """The transport is not ours to close."""

    def _permits(self, request: Request) -> bool:
        access = access_of(request)
        if access in self._granted:
            self.used.add(access)
            return True
        self.refused.append(access)
        return False


class Revocable:
    """Refuses everything about one resource once it is revoked; streams that are open go on."""

    def __init__(self, inner: Transport, resource: str) -> None:
        self._inner = inner
        self._resource = resource
        self.revoked = False

    async def send(self, request: Request) -> Response:
        if self._refuses(request):
            return Response(403, _forbidden(request))
        return await self._inner.send(request)

    async def open(self, request: Request) -> Stream:
        if self._refuses(request):
            return CompleteResponse(Response(403, _forbidden(request)))
        return await self._inner.open(request)

    async def close(self) -> None:
        """The transport is not ours to close."""

    def _refuses(self, request: Request) -> bool:
        return self.revoked and access_of(request).resource == self._resource


class WithoutWatches:
    """The part of a transport that tests without watches do not use; they add `send`."""

    async def open(self, request: Request) -> Stream:
        raise AssertionError("nothing is watched here")

    async def close(self) -> None:
        pass


class DyingTransport:
    """Sends requests until it is killed; after that none reaches the server.

    `dies_at` is the number of the write at which it is killed automatically. With `heard` that
    write still reaches the server, but its response is lost.
    """

    def __init__(self, inner: Transport, *, dies_at: int = 0, heard: bool = True) -> None:
        self._inner = inner
        self._dies_at = dies_at
        self._heard = heard
        self.writes = 0
        self.dead = False

    async def send(self, request: Request) -> Response:
        if self.dead:
            raise TransportError("the process is gone", sent=False)
        if request.method == "GET":
            return await self._inner.send(request)
        self.writes += 1
        if self.writes == self._dies_at:
            self.dead = True
            if self._heard:
                await self._inner.send(request)
        if self.dead:
            raise TransportError("the process is gone", sent=False)
        return await self._inner.send(request)

    async def open(self, request: Request) -> Stream:
        if self.dead:
            raise TransportError("the process is gone", sent=False)
        return await self._inner.open(request)

    async def close(self) -> None:
        """The transport is not ours to close."""


class Deep:
    """An API server whose objects are nested deeper than Python can decode, as real ones can be.

    In watch events the text `NESTED 5000 TIMES` is replaced by 5000 nested lists.
    """

    def __init__(self, inner: Transport) -> None:
        self._inner = inner

    async def send(self, request: Request) -> Response:
        return await self._inner.send(request)

    async def open(self, request: Request) -> Stream:
        return _DeepStream(await self._inner.open(request))

    async def close(self) -> None:
        """The transport is not ours to close."""


class _DeepStream:
    def __init__(self, inner: Stream) -> None:
        self._inner = inner
        self.status, self.headers = inner.status, inner.headers

    async def readline(self) -> bytes:
        return _NESTED.sub(_nest, await self._inner.readline())

    async def read(self) -> bytes:
        return await self._inner.read()

    async def close(self) -> None:
        await self._inner.close()


_NESTED: Final = re.compile(rb'"NESTED ([0-9]+) TIMES"')


def _nest(found: re.Match[bytes]) -> bytes:
    return b"[" * int(found[1]) + b"]" * int(found[1])


class Older:
    """An older API server that does not support streaming lists (sendInitialEvents)."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner

    async def send(self, request: Request) -> Response:
        return await self._inner.send(request)

    async def open(self, request: Request) -> Stream:
        if ("sendInitialEvents", "true") in request.query:
            body = {"kind": "Status", "code": 422, "message": "sendInitialEvents is forbidden"}
            return CompleteResponse(Response(422, msgspec.json.encode(body)))
        return await self._inner.open(request)

    async def close(self) -> None:
        """The transport is not ours to close."""


def _forbidden(request: Request) -> bytes:
    access = access_of(request)
    return msgspec.json.encode(
        {
            "apiVersion": "v1",
            "kind": "Status",
            "status": "Failure",
            "reason": "Forbidden",
            "code": 403,
            "message": f"the controller's role does not permit to {access.verb} {access.resource}",
        }
    )
