"""Writing an edit: one patch with preconditions, made anew when another client was faster."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from everynode.api.keys import CHANGE_CAUSE, CLI_FIELD_MANAGER
from everynode.change.edits import Edit, Object
from everynode.errors import UserError
from everynode.kube import verbs
from everynode.kube.client import Client
from everynode.kube.errors import Conflict
from everynode.kube.resources import Resource

ATTEMPTS: Final = 5  # other clients may write at the same time

# Reads the object again and makes the edit anew.
Remake = Callable[[], Awaitable[tuple[Object, Edit]]]

decode_object: Final = msgspec.json.Decoder(Object).decode


def full_patch(edit: Edit, command: str) -> Object:
    """Return the patch of an edit; the revision that a new template makes is to carry its cause."""
    if not edit.new_template:
        return edit.patch
    cause = command if edit.cause is None else edit.cause or None
    return {**edit.patch, "metadata": {"annotations": {CHANGE_CAUSE: cause}}}


async def write_edit(
    client: Client,
    resource: Resource,
    stored: Object,
    edit: Edit,
    *,
    command: str,
    remake: Remake,
    dry_run: bool = False,
) -> Object:
    """Write an edit and return the object afterwards; with `dry_run` only the server checks it.

    `command` is the command line that does the same, for the change cause. Raises UserError when
    other clients keep writing, and KubeError.
    """
    for attempt in range(1, ATTEMPTS + 1):
        if not edit.patch:
            return stored
        patch, meta = full_patch(edit, command), stored["metadata"]
        precondition = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
        request = verbs.patch(
            resource,
            meta["name"],
            {**patch, "metadata": {**patch.get("metadata", {}), **precondition}},
            namespace=meta["namespace"],
            manager=CLI_FIELD_MANAGER,
            dry_run=dry_run,
        )
        try:
            return await client.write(request, decode_object)
        except Conflict:
            if attempt < ATTEMPTS:
                stored, edit = await remake()
    raise UserError(f"other clients keep changing {stored['metadata']['name']}; try again")
