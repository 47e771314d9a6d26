"""S12: no write without a precondition."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from everynode.sim.invariants.promise import SETS, Invariant
from everynode.sim.record import Commit, body_of


class Preconditions(Invariant):
    """Deletes carry uid and version, patches uid or version, creates a name."""

    id: ClassVar[str] = "S12"
    title: ClassVar[str] = "every write carries its precondition"
    kinds: ClassVar[tuple[str, ...]] = ("pods", "controllerrevisions.apps", *SETS)
    ours: ClassVar[bool] = True

    def judge(self, commit: Commit) -> Iterable[str]:
        """Look at the request behind the commit."""
        if commit.asked is None:
            return
        request = commit.asked.request
        body = body_of(request)
        what = f"{request.method} {request.path}"
        if request.method == "DELETE":
            given = body.get("preconditions") or {}
            if not given.get("uid") or not given.get("resourceVersion"):
                yield f"{what} lacks uid or resourceVersion"
        elif request.method == "PATCH":
            meta = body.get("metadata") or {}
            if not meta.get("uid") and not meta.get("resourceVersion"):
                yield f"{what} lacks uid and resourceVersion"
        elif request.method == "POST" and not (body.get("metadata") or {}).get("name"):
            yield f"{what} lets the server choose the name"
