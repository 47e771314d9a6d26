"""S12: no write without a precondition."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from everynode.sim.invariants.promise import Invariant
from everynode.sim.invariants.views import by_controller
from everynode.sim.record import Commit, body_of

_KINDS = ("pods", "controllerrevisions.apps", "daemonsets.apps", "daemonsets.apps.kruise.io")


class Preconditions(Invariant):
    """Deletes carry uid and version, patches uid or version, creates a name."""

    id: ClassVar[str] = "S12"
    title: ClassVar[str] = "every write carries its precondition"

    def judge(self, commit: Commit) -> Iterable[str]:
        """Look at the request behind the commit."""
        if commit.asked is None or not by_controller(commit) or commit.kind not in _KINDS:
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
