from __future__ import annotations

from typing import Any

import pytest

from everynode.api.validation import validate_template
from tests.support.manifest_corpus import template


@pytest.mark.parametrize(
    "context",
    [
        {"privileged": True, "allowPrivilegeEscalation": False},
        {"capabilities": {"add": ["CAP_SYS_ADMIN"]}, "allowPrivilegeEscalation": False},
    ],
)
def test_privileges_and_their_refusal_exclude_each_other(context: dict[str, Any]) -> None:
    (error,) = validate_template(template({"securityContext": context}))
    assert error.path == "template.spec.containers[0].securityContext"
    assert "cannot set `allowPrivilegeEscalation` to false and" in error.message


@pytest.mark.parametrize(
    ("profile", "path"),
    [
        ({}, "type"),
        ({"type": "Unconfined", "localhostProfile": "a"}, "localhostProfile"),
        ({"type": "Localhost", "localhostProfile": "../a"}, "localhostProfile"),
    ],
)
def test_a_seccomp_profile_fits_its_type(profile: dict[str, Any], path: str) -> None:
    made = template(securityContext={"seccompProfile": profile})
    (error,) = validate_template(made)
    assert error.path == f"template.spec.securityContext.seccompProfile.{path}"


def test_an_open_proc_needs_own_users() -> None:
    container = {"securityContext": {"procMount": "Unmasked"}}
    assert validate_template(template(container, hostUsers=False)) == []
    assert len(validate_template(template(container))) == 1
