from __future__ import annotations

import pytest

from everynode.cli.access.option_order import move_behind_command


@pytest.mark.parametrize(
    ("typed", "moved"),
    [
        ("get", "get"),
        ("-n x get agent", "get -n x agent"),
        ("-nx get", "get -nx"),
        ("--namespace=x --context c get -o json", "get --namespace=x --context c -o json"),
        ("--kubeconfig k set image a b=c", "set --kubeconfig k image a b=c"),
        ("--help", "--help"),
        ("-n x --help", "-n x --help"),
        ("-n", "-n"),
        ("-n get", "-n get"),
        ("--wach get", "--wach get"),
        ("", ""),
    ],
)
def test_options_of_a_cluster_may_stand_before_the_command(typed: str, moved: str) -> None:
    assert move_behind_command(typed.split()) == moved.split()
