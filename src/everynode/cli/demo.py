"""`everynode demo`: a canary, a silent node, a bad version and the way back, drawn live."""

from __future__ import annotations

import sys
from typing import Final

import click

from everynode.cli.serving.options import speed_option

DEMO_NODES: Final = 20
MAX_NODES: Final = 1000  # more do not fit on a screen
CANARIES: Final = 2
BUDGET: Final = 3


@click.command()
@click.option(
    "--nodes",
    default=DEMO_NODES,
    show_default=True,
    type=click.IntRange(BUDGET + CANARIES, MAX_NODES),
    metavar="N",
    help="How many nodes the cluster has.",
)
@speed_option(4.0)
def command(nodes: int, speed: float) -> None:
    """Watch rollouts over an embedded cluster; ends by itself, leaves nothing behind.

    Two nodes get the new version first while the others are held. Then all are released, although
    one node is silent. Then comes a bad version: it takes three nodes and is taken back. Never
    more than three nodes are down at a time. It takes half a minute.

    \b
    everynode demo --nodes 100
    """
    import asyncio  # late, as all that --help does not need

    from everynode.cli.serving.demo import run_demo
    from everynode.errors import first_user_error

    try:
        asyncio.run(run_demo(nodes, speed, sys.stdout))
    except BaseExceptionGroup as errors:
        raise first_user_error(errors) from None
