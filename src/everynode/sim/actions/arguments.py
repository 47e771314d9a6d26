"""Arguments of actions: what a plan from a file may give each of them.

Plans that are drawn or written in code are right by construction; replay files are edited by hand.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from everynode.sim.plans.plan import Action


class _Arguments(msgspec.Struct, forbid_unknown_fields=True):
    """The arguments of all actions; one name means the same in each of them."""

    annotations: dict[str, str] = {}
    behind: int = 0  # events
    by: float = 0.0  # seconds
    coalesce: bool = False
    condition: str = ""
    count: int = 0
    cpu: str = ""  # a quantity
    effect: str = ""
    factor: int | float = 1
    free: int = 0  # thousandths of a cpu
    gone: bool = False
    grace: int = 0  # seconds
    half: bool = False
    image: str = ""
    images: str = ""
    index: int | None = None  # of a controller or a revision
    keep: bool = False
    kind: str = ""
    label: str = ""
    labels: dict[str, str | None] = {}
    least: int | str = 0
    lists: bool = False
    method: str = ""  # of HTTP requests
    name: str = ""  # of a DaemonSet
    node: int | str = 0
    number: int = 0
    propagation: str = ""
    rate: float = 1.0
    spec: dict[str, Any] = {}
    status: int | dict[str, Any] = 0  # an HTTP status, or the status of a DaemonSet
    strip: bool = False
    tolerations: list[dict[str, Any]] = []
    value: int | str = 0
    which: int = 0
    who: str = ""
    why: str = ""
    zone: str = ""


_REQUIRED: Final[dict[str, tuple[str, ...]]] = {
    "add-node": ("node",),
    "apply": ("spec",),
    "claim-from-elsewhere": ("node",),
    "clock-drift": ("rate",),
    "clock-jump": ("by",),
    "cut-off": ("who",),
    "label-node": ("labels",),
    "lagging-replica": ("behind", "who"),
    "lose-answers": ("method",),
    "lose-requests": ("method",),
    "mass-join": ("count",),
    "protect": ("least",),
    "refuse": ("status",),
    "refuse-watch": ("status",),
    "set-image": ("image",),
    "set-lifecycle": ("condition",),
    "set-requests": ("cpu",),
    "set-selector": ("labels",),
    "set-tolerations": ("tolerations",),
    "set-variable": ("value",),
}
# Actions on one controller process; `index` says which.
_ON_PROCESS: Final = (
    "clock-drift",
    "clock-jump",
    "crash",
    "freeze",
    "lagging-replica",
    "release",
    "restart",
)
_HTTP_STATUS: Final = ("refuse", "refuse-watch")
_MAX_NODES_JOINING: Final = 1_000


def argument_error(action: Action, *, controllers: int) -> str:
    """Why the arguments of an action are wrong; empty if they are right."""
    try:
        given = msgspec.convert(action.args, _Arguments)
    except msgspec.ValidationError as error:
        return f"the arguments of {action.name!r}: {error}"
    missing = [name for name in _REQUIRED.get(action.name, ()) if name not in action.args]
    if missing:
        return f"{action.name!r} needs the argument {missing[0]!r}"
    if action.name in _ON_PROCESS and not 0 <= (given.index or 0) < controllers:
        return f"{action.name!r} is about controller {given.index}, there are {controllers} from 0"
    if action.name in _HTTP_STATUS and not _is_http_error(given.status):
        return f"the status of {action.name!r} is an HTTP status from 400 to 599"
    if action.name == "write-status" and not isinstance(action.args.get("status", {}), dict):
        return f"the status of {action.name!r} is an object, as in a DaemonSet"
    if action.name == "add-node" and not isinstance(given.node, str):
        return f"the node of {action.name!r} is a name"
    if given.count > _MAX_NODES_JOINING:
        return f"{action.name!r} adds at most {_MAX_NODES_JOINING} nodes"
    return ""


def _is_http_error(status: object) -> bool:
    return isinstance(status, int) and 400 <= status <= 599
