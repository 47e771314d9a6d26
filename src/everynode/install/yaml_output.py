"""YAML output of manifests, with the reason of each RBAC rule as a comment above it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import yaml

from everynode.install.metadata import Object
from everynode.install.rbac import CommentedRule

_NUMBER: Final = re.compile(r"[-+]?(\.\d+|\d+(\.\d*)?)([eE][-+]?\d+)?|0[oO][0-7]+")


class _Dumper(yaml.SafeDumper):
    """Indents lists and writes no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write repeated values in full."""
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indent the items of a list below its key."""
        super().increase_indent(flow=flow, indentless=False)


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    """Multi-line text as a block; text that YAML 1.1 or 1.2 reads as a number (1e3) in quotes."""
    style = "|" if "\n" in text else "'" if _NUMBER.fullmatch(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(CommentedRule, yaml.SafeDumper.represent_dict)
_Dumper.add_representer(str, _represent_text)


def as_yaml(objects: Iterable[Object]) -> str:
    """Return all objects as one stream of documents."""
    return "---\n".join(_document(each) for each in objects)


def _document(given: Object) -> str:
    rules = given.get("rules", ())
    if not any(isinstance(rule, CommentedRule) for rule in rules):
        return _dump(given)
    rest = {key: value for key, value in given.items() if key != "rules"}
    return "".join((_dump(rest), "rules:\n", *(_rule(rule) for rule in rules)))


def _rule(rule: CommentedRule) -> str:
    # flow=None writes lists of scalars on one line: ["get", "list"].
    lines = (f"# {rule.why}\n{_dump([rule], flow=None)}").splitlines()
    return "".join(f"  {line}\n" for line in lines)


def _dump(value: Any, *, flow: bool | None = False) -> str:
    text: str = yaml.dump(
        value,
        Dumper=_Dumper,
        sort_keys=False,
        width=100,
        allow_unicode=True,
        default_flow_style=flow,
    )
    return text
