from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everynode.api.daemonset import Flavour
from everynode.api.revision_data import decode_revision_data, encode_revision_data, go_json
from everynode.api.template_equality import normalise
from tests.support.samples import template


def stored(template: dict[str, Any], flavour: Flavour = Flavour.ADVANCED) -> dict[str, Any]:
    data = msgspec.json.decode(encode_revision_data(msgspec.json.encode(template), flavour))
    found: dict[str, Any] = data["spec"]["template"]
    return found


def spec_of(spec: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = stored({"spec": {"containers": [], **spec}})["spec"]
    return found


def test_native_data_has_the_bytes_that_kube_controller_manager_writes() -> None:
    # As stored by the native controller of 1.36 for this template.
    given = (
        b'{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"c","image":"x:1",'
        b'"args":["<a>&b"],"resources":{}}],"restartPolicy":"Always"}}'
    )
    assert encode_revision_data(given, Flavour.NATIVE) == (
        b'{"spec":{"template":{"$patch":"replace","metadata":{"labels":{"app":"web"}},'
        b'"spec":{"containers":[{"args":["\\u003ca\\u003e\\u0026b"],"image":"x:1","name":"c",'
        b'"resources":{}}],"restartPolicy":"Always"}}}}'
    )


def test_advanced_data_has_the_bytes_that_openkruise_writes() -> None:
    given = b'{"spec":{"containers":[{"name":"c","image":"x:1"}]},"metadata":{"labels":{"a":"b"}}}'
    assert encode_revision_data(given, Flavour.ADVANCED) == (
        b'{"spec":{"template":{"$patch":"replace","metadata":{"creationTimestamp":null,'
        b'"labels":{"a":"b"}},"spec":{"containers":[{"image":"x:1","name":"c","resources":{}}]}}}}'
    )


def test_native_templates_of_older_servers_keep_their_null_timestamp() -> None:
    made = stored({"metadata": {"creationTimestamp": None}, "spec": {}}, Flavour.NATIVE)
    assert made["metadata"] == {"creationTimestamp": None}
    assert stored({"metadata": {}, "spec": {}}, Flavour.NATIVE)["metadata"] == {}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            {"containers": [{"resources": {"limits": {"cpu": 0.5, "memory": "1024Mi"}}}]},
            {"containers": [{"resources": {"limits": {"cpu": "500m", "memory": "1Gi"}}}]},
        ),
        ({"initContainers": [{}]}, {"initContainers": [{"resources": {}}]}),
        ({"nodeSelector": {}, "tolerations": [], "hostname": None}, {}),
        ({"securityContext": {}}, {"securityContext": {}}),
        ({"fieldOfTomorrow": {"a": []}}, {"fieldOfTomorrow": {"a": []}}),
        (
            {
                "volumes": [
                    {
                        "name": "v",
                        "downwardAPI": {
                            "items": [{"resourceFieldRef": {"resource": "limits.cpu"}}]
                        },
                    },
                    {"name": "p", "projected": {}},
                    {"name": "e", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
                    {"name": "d", "emptyDir": {"sizeLimit": "2048Mi"}},
                ]
            },
            {
                "volumes": [
                    {
                        "name": "v",
                        "downwardAPI": {
                            "items": [
                                {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "0"}}
                            ]
                        },
                    },
                    {"name": "p", "projected": {"sources": None}},
                    {
                        "name": "e",
                        "ephemeral": {
                            "volumeClaimTemplate": {
                                "metadata": {"creationTimestamp": None},
                                "spec": {"resources": {}},
                            }
                        },
                    },
                    {"name": "d", "emptyDir": {"sizeLimit": "2Gi"}},
                ]
            },
        ),
        (
            {
                "containers": [
                    {
                        "livenessProbe": {"grpc": {"port": 1}},
                        "env": [{"valueFrom": {"resourceFieldRef": {"resource": "x"}}}],
                    }
                ]
            },
            {
                "containers": [
                    {
                        "livenessProbe": {"grpc": {"port": 1, "service": None}},
                        "env": [
                            {"valueFrom": {"resourceFieldRef": {"resource": "x", "divisor": "0"}}}
                        ],
                        "resources": {},
                    }
                ]
            },
        ),
    ],
)
def test_advanced_data_has_the_fields_that_go_would_write(
    spec: dict[str, Any], expected: dict[str, Any]
) -> None:
    found = spec_of(spec)
    if "containers" not in expected:
        found.pop("containers", None)
    assert found == expected


def test_what_was_written_is_read_again_without_the_directive() -> None:
    given = template(hostNetwork=True)
    read = decode_revision_data(encode_revision_data(given, Flavour.ADVANCED))
    assert b"$patch" not in read
    assert normalise(read) == normalise(given)


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"{}", b'{"spec":{}}', b'{"spec":{"template":"x"}}', b"null"]
)
def test_data_without_a_template_says_so(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        decode_revision_data(data)


def test_line_separators_are_escaped_and_other_text_is_not() -> None:
    assert go_json({"b": "é\u2028\u2029\n", "a": 1}) == '{"a":1,"b":"é\\u2028\\u2029\\n"}'.encode()


@given(
    st.recursive(
        st.text() | st.integers(-9, 9) | st.none(), lambda x: st.dictionaries(st.text(), x)
    )
)
def test_escaping_changes_no_value(value: Any) -> None:
    assert msgspec.json.decode(go_json(value)) == value
