from __future__ import annotations

import pytest

from everynode.api.validation import validate_pod, validate_template
from tests.support.manifest_corpus import INVALID_PODS, VALID_PODS, Case, pod, template


@pytest.mark.parametrize("case", VALID_PODS, ids=repr)
def test_a_pod_that_is_right_is_accepted(case: Case) -> None:
    assert validate_pod(case.manifest) == []


@pytest.mark.parametrize("case", INVALID_PODS, ids=repr)
def test_an_invalid_pod_is_reported_at_its_field(case: Case) -> None:
    assert tuple(error.path for error in validate_pod(case.manifest)) == case.refused_at


def test_a_template_is_reported_below_the_path_it_is_given() -> None:
    (error,) = validate_template(template({"image": ""}), "spec.template")
    assert str(error) == "spec.template.spec.containers[0].image: Required value"


@pytest.mark.parametrize("validate", [validate_pod, validate_template])
@pytest.mark.parametrize("nothing", [None, 5, []])
def test_a_value_that_is_no_object_is_refused(validate: type, nothing: object) -> None:
    (error,) = validate(nothing)
    assert error.reason == "FieldValueTypeInvalid"


def test_type_errors_are_reported_before_rules_are_evaluated() -> None:
    errors = validate_pod(pod({"image": 5, "name": "-"}))
    assert [error.path for error in errors] == ["spec.containers[0].image"]


def test_a_template_may_leave_host_ports_to_the_pod() -> None:
    container = {"ports": [{"containerPort": 80}]}
    assert validate_template(template(container, hostNetwork=True)) == []
    assert validate_pod(pod(container, hostNetwork=True)) == []
