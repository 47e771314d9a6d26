"""Options before the command: `everynode -n kube-system get` is `everynode get -n kube-system`."""

from __future__ import annotations

from typing import Final

import click

_WITH_VALUE: Final = ("-n", "--namespace", "--context", "--kubeconfig")


def move_behind_command(arguments: list[str]) -> list[str]:
    """Move options that choose cluster and namespace behind the first word, where click wants them.

    kubectl takes them in both places, and `kubectl everynode` passes on what is typed.
    """
    end = 0
    while end < len(arguments):
        name, equals, _ = arguments[end].partition("=")
        if name in _WITH_VALUE:
            end += 1 if equals else 2
        elif arguments[end].startswith("-n") and not arguments[end].startswith("--"):
            end += 1  # -nNAME
        else:
            break
    if end >= len(arguments) or arguments[end].startswith("-"):
        return arguments
    return [arguments[end], *arguments[:end], *arguments[end + 1 :]]


class CommandGroup(click.Group):
    """A group whose commands may have the options of a cluster before their names."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the options of the group, and leave those of a cluster to the command."""
        return super().parse_args(ctx, move_behind_command(args))
