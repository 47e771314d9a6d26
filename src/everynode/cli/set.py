"""`everynode set image`: give containers of DaemonSets new images."""

from __future__ import annotations

import click

from everynode.cli.access.completion import complete_daemonset
from everynode.cli.access.option_order import CommandGroup
from everynode.cli.change.options import ChangeOptions, change_options


@click.group("set", cls=CommandGroup)
def command() -> None:
    """Change a field of a DaemonSet's pod template.

    \b
    everynode set image agent agent=registry.example/agent:1.1
    """


@command.command("image", short_help="Give containers new images.")
@click.argument(
    "arguments",
    metavar="[NAME] CONTAINER=IMAGE...",
    nargs=-1,
    required=True,
    shell_complete=complete_daemonset,
)
@change_options
def image(*, arguments: tuple[str, ...], options: ChangeOptions) -> None:
    """Give containers of DaemonSet NAME new images; the update begins at once.

    CONTAINER may be *, for all but init containers.

    \b
    One container:         everynode set image agent agent=registry.example/agent:1.1
    The native kind:       everynode set image ds/agent agent=registry.example/agent:1.1
    Look first:            everynode set image agent agent=agent:1.1 --dry-run=server
    All of a team:         everynode set image -l team=storage '*=registry.example/agent:1.1'
    """
    names = [each for each in arguments if "=" not in each]
    pairs = [each for each in arguments if "=" in each]
    images = dict(_parse(each) for each in pairs)
    if not images:
        raise click.UsageError("say which image: CONTAINER=IMAGE")
    # Late, as all that --help does not need.
    import shlex

    from everynode.change.edits import Edit, Object, set_images
    from everynode.cli.access.cluster import Cluster
    from everynode.cli.access.daemonset_names import FoundDaemonSet
    from everynode.cli.change.run import run_change

    async def edit(cluster: Cluster, found: FoundDaemonSet, stored: Object) -> Edit:
        return set_images(stored, images)

    run_change(names, options, edit, verb="set image", typed=shlex.join(pairs))


def _parse(pair: str) -> tuple[str, str]:
    container, _, image = pair.partition("=")
    if not container or image.split() != [image]:
        raise click.UsageError(f"{pair!r}: write CONTAINER=IMAGE, without spaces")
    return container, image
