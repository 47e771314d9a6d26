"""Images of a simulated cluster: which of them fail, and how, as one ConfigMap says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import click

from everynode.api.keys import CLI_FIELD_MANAGER
from everynode.cli.access.connection import connect
from everynode.cli.serving.simulated_nodes import Object, decode, require_simulation
from everynode.clock import SystemClock
from everynode.components.kubelet.behaviour import overrides_by_name
from everynode.components.kubelet.image_config import (
    CONFIG_MAPS,
    IMAGE_CONFIG_KEY,
    IMAGE_CONFIG_NAME,
    IMAGE_CONFIG_NAMESPACE,
)
from everynode.errors import UserError
from everynode.kube import verbs
from everynode.kube.client import Client
from everynode.kube.errors import AlreadyExists, Conflict, NotFound
from everynode.kube.requests import Request

_ATTEMPTS = 5


def mend_image(image: str, *, kubeconfig: str, context: str) -> None:
    """Let an image work, and say so; raises UserError."""
    # Some names, such as `agent:crash-loop`, fail by themselves; a line must override that.
    line = f"{image} fail=none" if overrides_by_name(image).fail else ""
    change_image(image, line, "works", kubeconfig=kubeconfig, context=context)


def change_image(image: str, line: str, done: str, *, kubeconfig: str, context: str) -> None:
    """Write the line about an image, an empty one for none, and say that it is done."""

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
