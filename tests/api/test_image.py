from __future__ import annotations

import pytest

from everynode.api.image import full_reference, repository, same_image

DIGEST = "sha256:" + "0" * 64


@pytest.mark.parametrize(
    ("short", "full"),
    [
        ("nginx", "docker.io/library/nginx:latest"),
        ("nginx:1.27", "docker.io/library/nginx:1.27"),
        ("grafana/agent:v1", "docker.io/grafana/agent:v1"),
        ("docker.io/nginx", "docker.io/nginx:latest"),
        ("index.docker.io/library/nginx", "docker.io/library/nginx:latest"),
        ("registry.example/agent", "registry.example/agent:latest"),
        ("registry.example:5000/agent", "registry.example:5000/agent:latest"),
        ("localhost/agent:2", "localhost/agent:2"),
        ("localhost:5000/team/agent:2", "localhost:5000/team/agent:2"),
        (f"agent@{DIGEST}", f"docker.io/library/agent@{DIGEST}"),
        (f"agent:3@{DIGEST}", f"docker.io/library/agent@{DIGEST}"),
    ],
)
def test_a_short_reference_is_spelled_out(short: str, full: str) -> None:
    assert full_reference(short) == full


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("agent", "agent"),
        ("agent:2", "agent"),
        ("registry.example/agent@sha256:abc", "registry.example/agent"),
        ("registry.example:5000/agent", "registry.example:5000/agent"),
        ("registry.example:5000/team/agent:1.0", "registry.example:5000/team/agent"),
        (f"registry.example:5000/agent:2@{DIGEST}", "registry.example:5000/agent"),
    ],
)
def test_the_repository_is_the_reference_without_tag_and_digest(image: str, name: str) -> None:
    assert repository(image) == name


def test_a_port_is_no_tag() -> None:
    assert not same_image("registry.example:5000/agent", "registry.example/agent:5000")


def test_nothing_is_the_same_as_no_image() -> None:
    assert not same_image("", "")
