"""S12: no write without a precondition."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Final

import msgspec

from everynode.sim.checks.check import DAEMONSET_KINDS, Check
from everynode.sim.history.record import Commit


class _Named(msgspec.Struct, gc=False, rename="camel"):
    name: Any = ""
    uid: Any = ""
    resource_version: Any = ""


class _Body(msgspec.Struct, gc=False):
    metadata: _Named | None = None
    preconditions: _Named | None = None


_decode: Final = msgspec.json.Decoder(_Body).decode


class Preconditions(Check):
    """Deletes carry uid and version, patches uid or version, creates a name."""

    id: ClassVar[str] = "S12"
    title: ClassVar[str] = "every write carries its precondition"
    kinds: ClassVar[tuple[str, ...]] = ("pods", "controllerrevisions.apps", *DAEMONSET_KINDS)
    controller_only: ClassVar[bool] = True

    def check(self, commit: Commit) -> Iterable[str]:
        """Check the request that caused the commit."""
        if commit.cause is None:
            return
        request = commit.cause.request
        body = _decode(request.body) if request.body[:1] == b"{" else _Body()
        given, meta = body.preconditions or _Named(), body.metadata or _Named()
        what = f"{request.method} {request.path}"
        if request.method == "DELETE":
            if not given.uid or not given.resource_version:
                yield f"{what} lacks uid or resourceVersion"
        elif request.method == "PATCH":
            if not meta.uid and not meta.resource_version:
                yield f"{what} lacks uid and resourceVersion"
        elif request.method == "POST" and not meta.name:
            yield f"{what} lets the server choose the name"
