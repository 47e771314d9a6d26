"""The difference of two revisions as it is printed."""

from __future__ import annotations

from everynode.cli.terminal.style import Style
from everynode.inspect.fleet import RevisionInfo
from everynode.inspect.templates import diff_of_templates


def diff_lines(before: RevisionInfo, after: RevisionInfo, style: Style) -> list[str]:
    """Return a unified diff of two templates in colours; empty if they are the same."""
    return [style.paint(line, _colour(line)) for line in diff_of_templates(before, after)]


def _colour(line: str) -> str | None:
    if line.startswith(("+++", "---")):
        return None
    return {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
