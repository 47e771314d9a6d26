from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from everynode.components.objects import FullPod, FullPodSpec, decode_pod


def read(spec: Any, phase: str = "Pending") -> FullPod:
    body = {"metadata": {"name": "one"}, "spec": spec, "status": {"phase": phase}}
    return decode_pod(json.dumps(body).encode())


def test_states_of_a_pod_share_their_spec() -> None:
    spec = {"nodeName": "n1", "containers": [{"name": "a", "image": "b"}]}
    before, after = read(spec), read(spec, "Running")
    assert before.spec is after.spec
    assert (before.status.phase, after.status.phase) == ("Pending", "Running")
    assert read({**spec, "nodeName": "n2"}).spec.node_name == "n2"


def test_a_pod_without_a_spec_has_an_empty_one() -> None:
    assert decode_pod(b'{"metadata":{"name":"one"}}').spec == FullPodSpec()


def test_a_spec_that_is_none_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        read({"containers": [{"name": 1}]})
