"""`everynode image`: make an image fail on a running simulated cluster, or work again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import click

from everynode.api.keys import CLI_FIELD_MANAGER
from everynode.cli.access.connection import connect
from everynode.cli.access.option_order import CommandGroup
from everynode.cli.access.options import connection_options
from everynode.cli.serving.simulated_nodes import Object, decode, require_simulation
from everynode.clock import SystemClock
from everynode.components.kubelet.behaviour import overrides_by_name
from everynode.components.kubelet.image_config import (
    CONFIG_MAPS,
    IMAGE_CONFIG_KEY,
    IMAGE_CONFIG_NAME,
    IMAGE_CONFIG_NAMESPACE,
)
from everynode.errors import UsageError, UserError
from everynode.kube import verbs
from everynode.kube.client import Client
from everynode.kube.errors import AlreadyExists, Conflict, NotFound
from everynode.kube.requests import Request

_ATTEMPTS = 5


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
    for node in nodes:
        if not node or node.split() != [node] or "," in node:
            raise UsageError(f"{node!r} is not the name of a node")
    only = f" on={','.join(nodes)}" if nodes else ""
    line = f"{_check_image(image)} fail={how}{only}"
    done = f"fails ({how})" + (f" on {', '.join(nodes)}" if nodes else "")
    _change_image(image, line, done, kubeconfig=kubeconfig, context=context)


@command.command()
@click.argument("image")
@connection_options
def fix(*, image: str, kubeconfig: str, context: str) -> None:
    """Let IMAGE work from now on.

    \b
    everynode image fix registry.example/agent:1.1
    """
    # Some names, such as `agent:crash-loop`, fail by themselves; a line must override that.
    line = f"{_check_image(image)} fail=none" if overrides_by_name(image).fail else ""
    _change_image(image, line, "works", kubeconfig=kubeconfig, context=context)


def _check_image(image: str) -> str:
    if not image or image.split() != [image] or image.startswith("#"):
        raise UsageError(f"{image!r} is not the name of an image")
    return image


def _change_image(image: str, line: str, done: str, *, kubeconfig: str, context: str) -> None:
    def change(text: str) -> str:
        kept = [each for each in text.splitlines() if each.split()[:1] != [image]]
        return "".join(f"{each}\n" for each in [*kept, line] if each)

    async def write_change() -> None:
        async with connect(SystemClock(), kubeconfig=kubeconfig, context=context) as client:
            await require_simulation(client)
            await _update_config_map(client, change)
            click.echo(f"image {image} {done}")

    asyncio.run(write_change())


async def _update_config_map(client: Client, change: Callable[[str], str]) -> None:
    """Change the ConfigMap with a resourceVersion, so that concurrent writes are not lost."""
    for _ in range(_ATTEMPTS):
        try:
            present = await client.read(
                verbs.get(CONFIG_MAPS, IMAGE_CONFIG_NAME, namespace=IMAGE_CONFIG_NAMESPACE), decode
            )
        except NotFound:
            present = None
        try:
            await client.write(_write_request(present, change), decode)
            return
        except (Conflict, AlreadyExists, NotFound):
            continue
    raise UserError(
        f"others keep changing ConfigMap {IMAGE_CONFIG_NAMESPACE}/{IMAGE_CONFIG_NAME}; try again"
    )


def _write_request(present: Object | None, change: Callable[[str], str]) -> Request:
    if present is None:
        meta = {"name": IMAGE_CONFIG_NAME, "namespace": IMAGE_CONFIG_NAMESPACE}
        body: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
        body["data"] = {IMAGE_CONFIG_KEY: change("")}
        return verbs.create(
            CONFIG_MAPS, body, namespace=IMAGE_CONFIG_NAMESPACE, manager=CLI_FIELD_MANAGER
        )
    text = (present.get("data") or {}).get(IMAGE_CONFIG_KEY, "")
    body = {**present, "data": {**(present.get("data") or {}), IMAGE_CONFIG_KEY: change(text)}}
    return verbs.replace(
        CONFIG_MAPS,
        IMAGE_CONFIG_NAME,
        body,
        namespace=IMAGE_CONFIG_NAMESPACE,
        manager=CLI_FIELD_MANAGER,
    )
