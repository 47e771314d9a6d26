from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everynode.api import keys
from everynode.api.defaults import default_template
from everynode.api.template_equality import normalise, template_digest
from tests.support.manifest_corpus import VALID, Case

if TYPE_CHECKING:
    from tests.support.real_server import RealApiServer

Object = dict[str, Any]


def template_of(spec: Object | None = None, container: Object | None = None) -> Object:
    return {
        "metadata": {"labels": {"app": "agent"}},
        "spec": {"containers": [{"name": "agent", "image": "agent:1"} | (container or {})]}
        | (spec or {}),
    }


PLAIN = template_of()
ENV_CPU = {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}
ENV_CPU_0 = {
    "name": "CPU",
    "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "0"}},
}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (PLAIN, default_template(PLAIN)),
        (PLAIN, PLAIN | {"metadata": {"creationTimestamp": None, "labels": {"app": "agent"}}}),
        (PLAIN, PLAIN | {"$patch": "replace"}),
        (PLAIN, template_of(container={"resources": {}})),
        (PLAIN, template_of(container={"resources": {"limits": {}, "requests": None}})),
        (PLAIN, template_of(container={"command": [], "env": None, "stdin": False})),
        (PLAIN, template_of(container={"securityContext": {"capabilities": {"add": []}}})),
        (PLAIN, template_of({"hostNetwork": False, "tolerations": [], "nodeSelector": {}})),
        (PLAIN, template_of({"affinity": {"nodeAffinity": {}}, "priorityClassName": ""})),
        (template_of({"serviceAccount": "robot"}), template_of({"serviceAccountName": "robot"})),
        (
            template_of(container={"resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}}}),
            template_of(container={"resources": {"limits": {"memory": "1Gi", "cpu": 1}}}),
        ),
        (template_of(container={"env": [ENV_CPU]}), template_of(container={"env": [ENV_CPU_0]})),
        (
            template_of({"volumes": [{"name": "v"}]}),
            template_of({"volumes": [{"name": "v", "emptyDir": {}}]}),
        ),
        (
            template_of(container={"livenessProbe": {"tcpSocket": {"port": 1}}}),
            template_of(
                container={
                    "livenessProbe": {
                        "tcpSocket": {"port": 1},
                        "initialDelaySeconds": 0,
                        "periodSeconds": 10,
                    }
                }
            ),
        ),
    ],
)
def test_different_spellings_mean_the_same(one: Object, other: Object) -> None:
    assert normalise(one) == normalise(other)
    assert template_digest(normalise(one)) == template_digest(normalise(other))


SELECTS_ALL = {"topologyKey": "zone", "labelSelector": {}}
SELECTS_NOTHING = {"topologyKey": "zone"}


def anti_affinity(term: Object) -> Object:
    return template_of(
        {
            "affinity": {
                "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
            }
        }
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (PLAIN, template_of(container={"image": "agent:2"})),
        (PLAIN, template_of({"hostUsers": False})),
        (PLAIN, template_of({"automountServiceAccountToken": False})),
        (PLAIN, template_of({"terminationGracePeriodSeconds": 0})),
        (PLAIN, template_of(container={"securityContext": {"runAsUser": 0}})),
        (PLAIN, template_of({"somethingNewer": None})),
        (template_of({"somethingNewer": 1}), template_of({"somethingNewer": 2})),
        (
            template_of(container={"args": ["a", "b"]}),
            template_of(container={"args": ["b", "a"]}),
        ),
        (
            template_of({"tolerations": [{"operator": "Exists"}]}),
            template_of({"tolerations": [{"operator": "Exists", "tolerationSeconds": 0}]}),
        ),
        (anti_affinity(SELECTS_ALL), anti_affinity(SELECTS_NOTHING)),
        (
            template_of(container={"resources": {"limits": {"cpu": "1"}}}),
            template_of(container={"resources": {"limits": {"cpu": "1001m"}}}),
        ),
        (
            template_of(container={"resources": {"limits": {"cpu": "0"}}}),
            template_of(container={"resources": {}}),
        ),
        (
            template_of(container={"env": [{"name": "A"}]}),
            template_of(container={"env": [{"name": "A", "value": "0"}]}),
        ),
    ],
)
def test_different_meanings_differ(one: Object, other: Object) -> None:
    assert normalise(one) != normalise(other)
    assert template_digest(normalise(one)) != template_digest(normalise(other))


def test_bytes_and_objects_compare() -> None:
    assert normalise(json.dumps(PLAIN).encode()) == normalise(PLAIN)


def test_what_is_no_object_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match="not a JSON object"):
        normalise(b"[]")
    with pytest.raises(ValueError, match="not a JSON object"):
        normalise(b"{")


def test_a_template_is_not_changed_by_comparing_it() -> None:
    before = json.dumps(PLAIN)
    normalise(PLAIN)
    assert json.dumps(PLAIN) == before


def test_values_of_the_wrong_type_are_compared_as_they_are() -> None:
    broken = template_of({"volumes": {"a": 1}, "containers": "none", "overhead": [1]})
    assert normalise(broken) == normalise(json.loads(json.dumps(broken)))
    assert normalise(broken) != normalise(PLAIN)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "1", "1000m", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "env", "limits", "resources", "cpu", "emptyDir", "newer"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
POD_SPEC = st.dictionaries(
    st.sampled_from(
        ["containers", "volumes", "tolerations", "securityContext", "hostNetwork", "overhead"]
    ),
    JSON,
)


def reverse_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: reverse_keys(value[key]) for key in reversed(value)}
    if isinstance(value, list):
        return [reverse_keys(item) for item in value]
    return value


@given(POD_SPEC)
def test_normal_form_is_stable_whatever_is_in_it(spec: Object) -> None:
    once = normalise({"spec": spec})
    assert normalise(once) == once
    turned = normalise({"spec": reverse_keys(spec)})
    assert template_digest(turned) == template_digest(once)


@pytest.mark.kubernetes
@pytest.mark.parametrize(
    "case", [c for c in VALID if c.manifest["apiVersion"] == keys.APPS_V1], ids=repr
)
def test_a_template_means_the_same_after_the_api_server_had_it(
    real: RealApiServer, case: Case
) -> None:
    stored = real.try_out(case.manifest).body["spec"]["template"]
    assert normalise(case.manifest["spec"]["template"]) == normalise(stored)
