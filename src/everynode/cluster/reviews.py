"""Questions about oneself: who am I, and what may I do. Whoever has the token may do everything."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from everynode.api.validation.faults import invalid as fault
from everynode.cluster.calls import Call
from everynode.cluster.errors import invalid
from everynode.cluster.forms import Metadata, form_of
from everynode.cluster.reads import JSON_HEADERS
from everynode.cluster.received import read_object
from everynode.kube.requests import Response

Object = dict[str, Any]

USER: Final = "everynode-admin"
GROUPS: Final = ("system:masters", "system:authenticated")


def may_i(call: Call) -> Response:
    """SelfSubjectAccessReview."""
    spec = read_object(call).get("spec") or {}
    resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is None and other is None:
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        raise invalid(_Nameless(), "", [fault("spec.resourceAttributes", None, why)])
    if resource is not None and other is not None:
        why = "cannot be specified in combination with resourceAttributes"
        raise invalid(_Nameless(), "", [fault("spec.nonResourceAttributes", other, why)])
    return _answer(call, {"allowed": True, "reason": f"{USER} may do everything"})


class _Nameless:
    """The real server forgets the kind here."""

    group = "authorization.k8s.io"
    kind = plural = ""


def what_may_i(call: Call) -> Response:
    """SelfSubjectRulesReview."""
    resources = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    others = {"verbs": ["*"], "nonResourceURLs": ["*"]}
    return _answer(
        call,
        {"resourceRules": [resources], "nonResourceRules": [others], "incomplete": False},
    )


def who_am_i(call: Call) -> Response:
    """SelfSubjectReview."""
    return _answer(call, {"userInfo": {"username": USER, "groups": list(GROUPS)}})


def _answer(call: Call, status: Object) -> Response:
    form = form_of(call)
    review = {**read_object(call), "status": status}
    shown = form.partial(review) if isinstance(form, Metadata) else review
    return Response(201, msgspec.json.encode(shown), JSON_HEADERS)
