"""Running a change: find the DaemonSets, compute all edits, ask, then write them one by one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import click

from everynode.api.daemonset import UpdateStrategyType
from everynode.change.edits import Edit, Object
from everynode.change.write import decode_object, full_patch, write_edit
from everynode.cli.access.cluster import Cluster, open_cluster
from everynode.cli.access.daemonset_names import (
    FoundDaemonSet,
    find_daemonset,
    full_name,
    list_daemonsets,
)
from everynode.cli.change.options import ChangeOptions
from everynode.cli.terminal.output import print_document
from everynode.cli.terminal.question import can_ask, interruptible
from everynode.errors import UsageError, UserError, replace_control_characters
from everynode.kube.permissions import missing_permissions

_MAX_NAMED: Final = 5  # names in a question
_SUFFIX: Final = {"none": "", "client": " (dry run)", "server": " (server dry run)"}

# Computes the edit of one DaemonSet, given the object as it is stored; may read more.
MakeEdit = Callable[[Cluster, FoundDaemonSet, Object], Awaitable[Edit]]


def run_change(
    names: Sequence[str], options: ChangeOptions, make_edit: MakeEdit, *, verb: str, typed: str = ""
) -> None:
    """Change DaemonSets; raises UserError, and nothing is written unless every edit is possible.

    `verb` is what is done, for the question before several are changed; `typed` the rest of the
    command line after the name, for the change cause.
    """
    asyncio.run(_run(names, options, make_edit, verb, typed))


async def _run(
    names: Sequence[str], options: ChangeOptions, make_edit: MakeEdit, verb: str, typed: str
) -> None:
    if bool(names) == bool(options.selector):
        raise UsageError("give the names of DaemonSets, or a selector with -l")
    if options.all_namespaces and not options.selector:
        raise UsageError("--all-namespaces needs a selector: -l QUERY")
    async with open_cluster(options.access) as cluster:
        targets = await _find(cluster, names, options)
        edits = [await make_edit(at, found, decode_object(found.raw)) for at, found in targets]
        if options.dry_run == "none":
            _confirm([found for _, found in targets], verb, yes=options.yes)
        results = []
        for (at, found), edit in zip(targets, edits, strict=True):
            command = f"everynode {verb} {found.short_name} {typed}".rstrip()
            written = await _write(at, found, edit, make_edit, options.dry_run, command)
            results.append(written)
            if not options.output:
                _report(found, edit, options, at.where(found.ds.namespace))
        _print(results, [found for _, found in targets], options.output)


async def _find(
    cluster: Cluster, names: Sequence[str], options: ChangeOptions
) -> list[tuple[Cluster, FoundDaemonSet]]:
    """Return the DaemonSets, each with the connection in its namespace."""
    if names:
        return [(cluster, await find_daemonset(cluster, name)) for name in dict.fromkeys(names)]
    listed, missing = await list_daemonsets(
        cluster, selector=options.selector, everywhere=options.all_namespaces
    )
    if missing:
        raise missing_permissions(missing)  # some would be left out unseen
    if not listed:
        raise UserError(f"no DaemonSet has the labels {options.selector}")
    places = [replace(cluster, namespace=ds.namespace) for ds in listed]
    return [
        (at, await find_daemonset(at, ds.short_name)) for at, ds in zip(places, listed, strict=True)
    ]


def _confirm(found: Sequence[FoundDaemonSet], verb: str, *, yes: bool) -> None:
    """Ask before more than one DaemonSet is changed; raises UserError without a terminal."""
    if len(found) < 2 or yes:
        return
    names = ", ".join(f"{each.short_name} in {each.ds.namespace}" for each in found[:_MAX_NAMED])
    more = f" and {len(found) - _MAX_NAMED} more" if len(found) > _MAX_NAMED else ""
    question = f"{verb}: {len(found)} DaemonSets ({names}{more})"
    if not can_ask():
        raise UserError(f"{question}; add --yes to change them all")
    with interruptible():
        confirmed = click.confirm(f"{question}?", err=True)
    if not confirmed:
        raise UserError("nothing was changed")


async def _write(
    cluster: Cluster,
    found: FoundDaemonSet,
    edit: Edit,
    make_edit: MakeEdit,
    dry_run: str,
    command: str,
) -> Object:
    """Write one edit, made anew if another client was faster; return the object afterwards."""
    stored = decode_object(found.raw)
    if dry_run == "client":
        from everynode.apiserver.patches.json_patch import apply_merge_patch

        merged: Object = apply_merge_patch(stored, full_patch(edit, command))
        return merged

    async def remake() -> tuple[Object, Edit]:
        again = await find_daemonset(cluster, found.short_name)
        latest = decode_object(again.raw)
        return latest, await make_edit(cluster, again, latest)

    return await write_edit(
        cluster.client,
        found.resource,
        stored,
        edit,
        command=command,
        remake=remake,
        dry_run=dry_run == "server",
    )


def _report(found: FoundDaemonSet, edit: Edit, options: ChangeOptions, where: str) -> None:
    done = replace_control_characters(edit.done)  # it quotes the images of before
    click.echo(f"{full_name(found.ds)} {done}{_SUFFIX[options.dry_run] if edit.patch else ''}")
    if edit.warning:
        click.echo(f"warning: {edit.warning}", err=True)
    if not edit.patch or options.dry_run != "none":
        return
    name = f"{found.short_name}{where}"
    strategy = found.ds.strategy
    if edit.new_template and strategy.type is UpdateStrategyType.ON_DELETE:
        click.echo("Its strategy is OnDelete: a pod is updated when you delete it.", err=True)
    elif edit.new_template and strategy.paused:
        click.echo(f"It is paused. Let it go: everynode resume {name}", err=True)
    else:
        click.echo(f"Follow it: everynode status {name} --watch", err=True)


def _print(results: Sequence[Any], found: Sequence[FoundDaemonSet], output: str) -> None:
    if output == "name":
        for each in found:
            click.echo(full_name(each.ds))
    elif output:
        for result in results:
            result["metadata"].pop("managedFields", None)
        print_document(results[0] if len(results) == 1 else {"items": list(results)}, output)
