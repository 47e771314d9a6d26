"""Pod templates of revisions as YAML, and what two of them differ in."""

from __future__ import annotations

import difflib

import msgspec
import yaml

from everynode.api.nulls import drop_nulls
from everynode.cli.terminal.style import Style
from everynode.inspect.fleet import RevisionInfo


def template_text(revision: RevisionInfo) -> str:
    """Return the pod template as YAML; empty if the revision holds none."""
    if not revision.template:
        return ""
    template = drop_nulls(msgspec.json.decode(revision.template))
    return yaml.safe_dump(template, sort_keys=False, allow_unicode=True)


def diff_lines(before: RevisionInfo, after: RevisionInfo, style: Style) -> list[str]:
    """Return a unified diff of two templates; empty if they are the same."""
    lines = difflib.unified_diff(
        template_text(before).splitlines(),
        template_text(after).splitlines(),
        f"revision {before.number}",
        f"revision {after.number}",
        lineterm="",
    )
    return [style.paint(line, _colour(line)) for line in lines]


def _colour(line: str) -> str | None:
    if line.startswith(("+++", "---")):
        return None
    return {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
