"""`everynode lint`: check manifests of DaemonSets without a cluster."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from everynode.cli.terminal.output import output_option
from everynode.errors import one_line, replace_control_characters

Object = dict[str, Any]


@click.command("lint")
@click.option(
    "-f",
    "--filename",
    "files",
    multiple=True,
    required=True,
    metavar="FILE",
    help="A manifest, or - for standard input; may be given several times.",
)
@click.option("--strict", is_flag=True, help="Exit with 1 for warnings, too.")
@output_option("json", "yaml")
def command(*, files: Sequence[str], strict: bool, output: str) -> None:
    """Check the DaemonSets in manifests: errors, unknown fields, and risks of a rollout.

    No cluster is needed. The exit code is 1 if there is an error; with --strict, also if there is a
    warning. Other objects in the files are ignored.

    \b
    In a pipeline:     everynode lint -f agent.yaml --strict
    With kustomize:    kustomize build . | everynode lint -f -
    For a program:     everynode lint -f agent.yaml -o json
    """
    # Late, as all that --help does not need.
    import msgspec

    from everynode.api.validation.lint import LintFinding, Severity, lint_daemonset
    from everynode.cli.terminal.manifest_files import display_name, is_daemonset, read_unchecked
    from everynode.cli.terminal.output import print_document
    from everynode.cli.terminal.text import format_count

    found: list[tuple[str, Object, LintFinding]] = []
    checked = 0
    for name in files:
        for manifest in filter(is_daemonset, read_unchecked(name)):
            checked += 1
            found += [(display_name(name), manifest, each) for each in lint_daemonset(manifest)]
    if output:
        items = [
            {"file": name, **_identity(manifest), **msgspec.to_builtins(each)}
            for name, manifest, each in found
        ]
        print_document({"items": items}, output)
    else:
        for name, manifest, each in found:
            line = one_line(f"{name}: {_describe(manifest)}: {each}")
            click.echo(replace_control_characters(line))
    errors = sum(each.severity is Severity.ERROR for _, _, each in found)
    warnings = len(found) - errors
    if not output:
        counts = f"{format_count(errors, 'error')}, {format_count(warnings, 'warning')}"
        click.echo(f"{format_count(checked, 'DaemonSet')} checked: {counts}", err=True)
    if errors or (strict and warnings):
        sys.exit(1)


def _identity(manifest: Object) -> dict[str, str]:
    """Return apiVersion, namespace and name as they are written; empty where they are absent."""
    metadata = manifest.get("metadata")
    written = metadata if isinstance(metadata, dict) else {}
    return {
        "apiVersion": str(manifest.get("apiVersion") or ""),
        "namespace": str(written.get("namespace") or ""),
        "name": str(written.get("name") or ""),
    }


def _describe(manifest: Object) -> str:
    """Return `ads/NAME` or `ds/NAME`, as far as the manifest says which it is."""
    from everynode.api.decode import DecodeError
    from everynode.api.versions import flavour_of

    version, namespace, name = _identity(manifest).values()
    try:
        who = f"{flavour_of(version).short}/{name}" if name else "DaemonSet without a name"
    except DecodeError:
        who = f"DaemonSet {name}"
    return f"{who} in {namespace}" if namespace else who
