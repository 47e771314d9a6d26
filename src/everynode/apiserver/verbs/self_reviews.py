"""Self reviews: SelfSubjectAccessReview, -RulesReview and SelfSubjectReview.

There is one user; the holder of the token may do everything.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from everynode.api.validation.field_errors import invalid as fault
from everynode.apiserver.errors import invalid
from everynode.apiserver.output.representation import MetadataOnly, representation_for
from everynode.apiserver.request.api_request import ApiRequest
from everynode.apiserver.request.body import read_object
from everynode.apiserver.verbs.read import JSON_HEADERS
from everynode.kube.requests import Response

Object = dict[str, Any]

USER: Final = "everynode-admin"
GROUPS: Final = ("system:masters", "system:authenticated")


def self_subject_access_review(request: ApiRequest) -> Response:
    """SelfSubjectAccessReview."""
    spec = read_object(request).get("spec") or {}
    resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if (resource is None) == (other is None):
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        raise invalid(_KindMissing(), "", [fault("spec", other and spec, why)])
    return _respond(request, {"allowed": True, "reason": f"{USER} may do everything"})


class _KindMissing:
    """kube-apiserver leaves the kind out of these errors."""

    group = "authorization.k8s.io"
    kind = plural = ""


def self_subject_rules_review(request: ApiRequest) -> Response:
    """SelfSubjectRulesReview."""
    resources = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    others = {"verbs": ["*"], "nonResourceURLs": ["*"]}
    return _respond(
        request,
        {"resourceRules": [resources], "nonResourceRules": [others], "incomplete": False},
    )


def self_subject_review(request: ApiRequest) -> Response:
    """SelfSubjectReview."""
    return _respond(request, {"userInfo": {"username": USER, "groups": list(GROUPS)}})


def _respond(request: ApiRequest, status: Object) -> Response:
    form = representation_for(request)
    review = {**read_object(request), "status": status}
    shown = form.partial(review) if isinstance(form, MetadataOnly) else review
    return Response(201, msgspec.json.encode(shown), JSON_HEADERS)
