from __future__ import annotations

import pytest

from everynode.api.validation import validate_pod, validate_template
from tests.api.corpus import INVALID_PODS, VALID_PODS, Case, pod, template


@pytest.mark.parametrize("case", VALID_PODS, ids=repr)
def test_a_pod_that_is_right_is_accepted(case: Case) -> None:
    assert validate_pod(case.manifest) == []


@pytest.mark.parametrize("case", INVALID_PODS, ids=repr)
def test_a_pod_that_is_wrong_is_told_at_its_field(case: Case) -> None:
    assert tuple(fault.path for fault in validate_pod(case.manifest)) == case.refused_at


def test_a_template_is_told_below_the_path_it_is_given() -> None:
    (fault,) = validate_template(template({"image": ""}), "spec.template")
    assert str(fault) == "spec.template.spec.containers[0].image: Required value"


@pytest.mark.parametrize("judge", [validate_pod, validate_template])
@pytest.mark.parametrize("nothing", [None, 5, []])
def test_what_is_no_object_is_told_so(judge: type, nothing: object) -> None:
    (fault,) = judge(nothing)
    assert fault.reason == "FieldValueTypeInvalid"


def test_types_are_told_before_rules_are_asked() -> None:
    faults = validate_pod(pod({"image": 5, "name": "-"}))
    assert [fault.path for fault in faults] == ["spec.containers[0].image"]


def test_a_template_may_leave_host_ports_to_the_pod() -> None:
    container = {"ports": [{"containerPort": 80}]}
    assert validate_template(template(container, hostNetwork=True)) == []
    assert validate_pod(pod(container, hostNetwork=True)) == []
