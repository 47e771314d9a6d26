"""Pod templates of revisions as YAML, and what two of them differ in."""

from __future__ import annotations

import difflib
from typing import Any

import msgspec
import yaml

from everynode.api.nulls import drop_nulls
from everynode.inspect.fleet import RevisionInfo


def template_text(revision: RevisionInfo) -> str:
    """Return the pod template as YAML; empty if the revision holds none."""
    return as_yaml(msgspec.json.decode(revision.template)) if revision.template else ""


def as_yaml(content: Any) -> str:
    """Return an object as YAML, without nulls."""
    return yaml.safe_dump(drop_nulls(content), sort_keys=False, allow_unicode=True)


def diff_of_templates(before: RevisionInfo, after: RevisionInfo) -> list[str]:
    """Return a unified diff of two templates; empty if they are the same."""
    names = f"revision {before.number}", f"revision {after.number}"
    return diff_of_texts(template_text(before), template_text(after), *names)


def diff_of_texts(before: str, after: str, name: str, new_name: str) -> list[str]:
    """Return a unified diff of two texts; empty if they are the same."""
    lines = before.splitlines(), after.splitlines()
    return list(difflib.unified_diff(*lines, name, new_name, lineterm=""))
