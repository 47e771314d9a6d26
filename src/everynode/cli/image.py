"""`everynode image`: make an image fail on a running simulated cluster, or work again."""

from __future__ import annotations

import click

from everynode.cli.access.option_order import CommandGroup
from everynode.cli.access.options import connection_options
from everynode.errors import UsageError


@click.group("image", cls=CommandGroup)
def command() -> None:
    """Break or mend an image of a simulated cluster.

    \b
    everynode image fail registry.example/agent:1.1
    everynode image fix registry.example/agent:1.1

    The same can be done with kubectl, by a line `IMAGE fail=crash` under the key `images` of the
    ConfigMap kube-system/everynode-images. IMAGE may contain `*`.
    """


@command.command()
@click.argument("image")
@click.option(
    "--how",
    type=click.Choice(["crash", "pull", "probe", "exit"]),
    default="crash",
    show_default=True,
    help="It crashes as soon as it runs, cannot be pulled, is never ready, or ends by itself.",
)
@click.option(
    "--on", "nodes", metavar="NODE", multiple=True, help="Only on this node; may be repeated."
)
@connection_options
def fail(*, image: str, how: str, nodes: tuple[str, ...], kubeconfig: str, context: str) -> None:
    """Let IMAGE fail from now on, also where it runs already.

    \b
    everynode image fail registry.example/agent:1.1 --how pull
    everynode image fail registry.example/agent:1.1 --on node-0003 --on node-0007
    """
    from everynode.cli.serving.images import change_image  # late, as --help needs none of it

    for node in nodes:
        if not node or node.split() != [node] or "," in node:
            raise UsageError(f"{node!r} is not the name of a node")
    only = f" on={','.join(nodes)}" if nodes else ""
    line = f"{_check_image(image)} fail={how}{only}"
    done = f"fails ({how})" + (f" on {', '.join(nodes)}" if nodes else "")
    change_image(image, line, done, kubeconfig=kubeconfig, context=context)


@command.command()
@click.argument("image")
@connection_options
def fix(*, image: str, kubeconfig: str, context: str) -> None:
    """Let IMAGE work from now on.

    \b
    everynode image fix registry.example/agent:1.1
    """
    from everynode.cli.serving.images import mend_image  # late, as --help needs none of it

    mend_image(_check_image(image), kubeconfig=kubeconfig, context=context)


def _check_image(image: str) -> str:
    if not image or image.split() != [image] or image.startswith("#"):
        raise UsageError(f"{image!r} is not the name of an image")
    return image
