"""`everynode image`: break and mend images of a simulated cluster while it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import click

from everynode.cli.connection import connect, connection_options
from everynode.cli.errors import UserError, WrongUsage
from everynode.cli.simulation import MANAGER, Object, decode, require_simulation
from everynode.clock import SystemClock
from everynode.cluster.machinery.behaviour import by_name
from everynode.cluster.machinery.catalogue import CONFIG_MAPS, KEY, NAME, NAMESPACE
from everynode.kube import verbs
from everynode.kube.client import Client
from everynode.kube.errors import AlreadyExists, Conflict, NotFound
from everynode.kube.requests import Request

_ATTEMPTS = 5


@click.group("image")
def command() -> None:
    """Break or mend an image of a simulated cluster.

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
@connection_options
def fail(*, image: str, how: str, kubeconfig: str, context: str) -> None:
    """Let IMAGE fail from now on, also where it runs already."""
    line = f"{_checked(image)} fail={how}"
    _change(image, line, f"fails ({how})", kubeconfig=kubeconfig, context=context)


@command.command()
@click.argument("image")
@connection_options
def fix(*, image: str, kubeconfig: str, context: str) -> None:
    """Let IMAGE work from now on."""
    # What the name says must be gainsaid.
    line = f"{_checked(image)} fail=none" if by_name(image).fail else ""
    _change(image, line, "works", kubeconfig=kubeconfig, context=context)


def _checked(image: str) -> str:
    if not image or image.split() != [image] or image.startswith("#"):
        raise WrongUsage(f"{image!r} is not the name of an image")
    return image


def _change(image: str, line: str, done: str, *, kubeconfig: str, context: str) -> None:
    def change(text: str) -> str:
        kept = [each for each in text.splitlines() if each.split()[:1] != [image]]
        return "".join(f"{each}\n" for each in [*kept, line] if each)

    async def tell() -> None:
        async with connect(SystemClock(), kubeconfig=kubeconfig, context=context) as client:
            await require_simulation(client)
            await _rewrite(client, change)
            click.echo(f"image {image} {done}")

    asyncio.run(tell())


async def _rewrite(client: Client, change: Callable[[str], str]) -> None:
    """Change the ConfigMap; whoever writes at the same time is not overwritten."""
    for _ in range(_ATTEMPTS):
        try:
            present = await client.read(verbs.get(CONFIG_MAPS, NAME, namespace=NAMESPACE), decode)
        except NotFound:
            present = None
        try:
            await client.write(_write(present, change), decode)
            return
        except (Conflict, AlreadyExists, NotFound):
            continue
    raise UserError(f"others keep changing ConfigMap {NAMESPACE}/{NAME}; try again")


def _write(present: Object | None, change: Callable[[str], str]) -> Request:
    if present is None:
        meta = {"name": NAME, "namespace": NAMESPACE}
        body: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
        body["data"] = {KEY: change("")}
        return verbs.create(CONFIG_MAPS, body, namespace=NAMESPACE, manager=MANAGER)
    text = (present.get("data") or {}).get(KEY, "")
    body = {**present, "data": {**(present.get("data") or {}), KEY: change(text)}}
    return verbs.replace(CONFIG_MAPS, NAME, body, namespace=NAMESPACE, manager=MANAGER)
