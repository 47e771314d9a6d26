"""Where the embedded server may answer otherwise than a real one, each with its reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from tests.fuzz.requests import DrawnRequest


@dataclass(frozen=True)
class Exchange:
    """Both answers to one request, without what is different in every run."""

    asked: DrawnRequest
    real: tuple[int, Any]
    ours: tuple[int, Any]

    @property
    def message(self) -> str:
        """The response of the real server."""
        return str(self.real[1].get("message", "")) if isinstance(self.real[1], dict) else ""


Applies = Callable[[Exchange], bool]


_IDLE: Final = (
    "services",
    "roles",
    "rolebindings",
    "networkpolicies",
    "resourcequotas",
    "poddisruptionbudgets",
    "deployments",
    "replicasets",
    "secrets",
    "serviceaccounts",
    "leases",
)


def _about(plural: str) -> Applies:
    return lambda exchange: f"/{plural}" in exchange.asked.path


def _both_succeed_but_for(*parts: str) -> Applies:
    """Both servers answer alike, except for these parts of the objects and their metadata."""

    def without(answer: Any) -> Any:
        if not isinstance(answer, dict):
            return answer
        metadata = answer.get("metadata")
        kept = {key: value for key, value in answer.items() if key not in parts}
        if isinstance(metadata, dict):
            kept["metadata"] = {key: metadata[key] for key in metadata if key not in parts}
        if isinstance(answer.get("items"), list):
            kept["items"] = [without(item) for item in answer["items"]]
        return kept

    def applies(exchange: Exchange) -> bool:
        return exchange.real[0] == exchange.ours[0] and without(exchange.real[1]) == without(
            exchange.ours[1]
        )

    return applies


_ONLY_MANAGED_FIELDS: Final = _both_succeed_but_for("managedFields", "resourceVersion")
_ONLY_STATUS: Final = _both_succeed_but_for("status", "managedFields", "resourceVersion")


KNOWN: Final[tuple[tuple[str, Applies], ...]] = (
    (
        "EndpointSlices are kept as they come: nothing here uses them",
        _about("endpointslices"),
    ),
    (
        "fields behind gates that are off by default are kept, where a real server drops them",
        lambda exchange: (
            _about("leases")(exchange)
            and (b"preferredHolder" in exchange.asked.body or b'"strategy":' in exchange.asked.body)
        ),
    ),
    (
        "the status of a definition is worked out at once, not by a controller a moment later",
        lambda exchange: (
            exchange.real[0] == exchange.ours[0] and _about("customresourcedefinitions")(exchange)
        ),
    ),
    (
        "a namespace has its account `default` at once; the real server runs without controllers",
        lambda exchange: (
            exchange.real[0] == exchange.ours[0]
            and exchange.asked.path.endswith("/serviceaccounts")
        ),
    ),
    (
        "of the rules on structural schemas the embedded server checks only some",
        lambda exchange: (
            exchange.real[0] == 422
            and exchange.ours[0] < 300
            and _about("customresourcedefinitions")(exchange)
        ),
    ),
    (
        "of kinds that nothing here runs only some rules are checked: what is wrong is kept",
        lambda exchange: (
            exchange.real[0] == 422
            and exchange.ours[0] < 300
            and any(_about(plural)(exchange) for plural in _IDLE)
        ),
    ),
    (
        "the pods of a budget are counted when it is read; the real server runs no controllers",
        lambda exchange: _ONLY_STATUS(exchange) and _about("poddisruptionbudgets")(exchange),
    ),
    (
        "a real server forgets who manages a custom object when a bad spec is sent to its status",
        lambda exchange: _ONLY_MANAGED_FIELDS(exchange) and exchange.asked.path.endswith("/status"),
    ),
    (
        "a real server does not read the query of a deletion that has a body",
        lambda exchange: (
            exchange.asked.method == "DELETE" and bool(exchange.asked.body and exchange.asked.query)
        ),
    ),
    (
        "in the data of a revision a real server compares bytes, spaces included",
        lambda exchange: (
            "data: Invalid value" in exchange.message and _about("controllerrevisions")(exchange)
        ),
    ),
    (
        "when a deletion ends is not for clients to write: it is left out, not refused",
        lambda exchange: "metadata.deletion" in exchange.message,
    ),
    (
        "JSON is read to a depth of about a thousand, by a real server to ten thousand",
        lambda exchange: (
            exchange.ours[0] == 400
            and (b"[" * 1500 in exchange.asked.body or b'{"a":' * 1500 in exchange.asked.body)
        ),
    ),
    (
        "a list that is emptied loses its managers; Go tells an empty list from none",
        lambda exchange: _ONLY_MANAGED_FIELDS(exchange) and b":[]" in exchange.asked.body,
    ),
    (
        "a request that is given next to no time is cut off by the slower server",
        lambda exchange: any(name == "timeout" for name, _ in exchange.asked.query),
    ),
)


def known(exchange: Exchange) -> str:
    """Why these answers may differ; empty if they may not, as when ours is an internal error."""
    if exchange.ours[0] >= 500 > exchange.real[0]:
        return ""
    return next((reason for reason, applies in KNOWN if applies(exchange)), "")
