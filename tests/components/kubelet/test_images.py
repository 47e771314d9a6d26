"""Images: names, ids and pulls."""

from __future__ import annotations

import pytest

from everynode.components.kubelet.behaviour import (
    Behaviour,
    BehaviourOverrides,
    ImageLine,
    ImageOverrides,
)
from everynode.components.kubelet.images import container_id, image_id, pull_seconds


@pytest.mark.parametrize(
    ("image", "repository"),
    [
        ("nginx:1.7.9", "nginx"),
        ("nginx", "nginx"),
        (
            "repository.test.com:8444/kubernetes/nginx/nginx:1.7.9",
            "repository.test.com:8444/kubernetes/nginx/nginx",
        ),
    ],
)
def test_an_id_is_the_repository_and_a_digest(image: str, repository: str) -> None:
    found, _, digest = image_id(image).partition("@")
    assert found == repository
    assert digest.startswith("sha256:")
    assert len(digest) == 7 + 64


def test_other_images_have_other_ids_and_a_digest_is_kept() -> None:
    assert image_id("nginx:1") != image_id("nginx:2")
    assert image_id("nginx:1@sha256:" + "a" * 64) == "nginx@sha256:" + "a" * 64


def test_every_run_of_a_container_has_its_own_id() -> None:
    assert container_id("u", "a", 0) == container_id("u", "a", 0)
    assert (
        len({container_id("u", "a", 0), container_id("u", "a", 1), container_id("u", "b", 0)}) == 3
    )


def test_a_pull_takes_the_same_time_on_every_node_and_as_long_as_was_said() -> None:
    behaviour, nothing = Behaviour(pull=(1.0, 2.0)), ImageOverrides()
    takes = pull_seconds("agent:v1", "a", behaviour, nothing)
    assert 1.0 <= takes <= 2.0
    assert takes == pull_seconds("agent:v1", "b", behaviour, nothing)
    slow = ImageOverrides((ImageLine("agent:v1", BehaviourOverrides(pull=9.0)),))
    assert pull_seconds("agent:v1", "a", behaviour, slow) == 9.0
