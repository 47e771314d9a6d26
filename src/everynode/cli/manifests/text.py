"""Manifests as YAML that people read: the reason of each rule stands above it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import yaml

from everynode.cli.manifests.names import Object
from everynode.cli.manifests.rbac import Reasoned

_NUMBER: Final = re.compile(r"[-+]?(\.\d+|\d+(\.\d*)?)([eE][-+]?\d+)?|0[oO][0-7]+")


class _Dumper(yaml.SafeDumper):
    """Lists indented, no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write everything out where it belongs."""
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indent the items of a list below its key."""
        super().increase_indent(flow=flow, indentless=False)


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    """Scripts line by line; quotes around what is a number to other readers of YAML, as 1e3 is."""
    style = "|" if "\n" in text else "'" if _NUMBER.fullmatch(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(Reasoned, yaml.SafeDumper.represent_dict)
_Dumper.add_representer(str, _represent_text)


def as_yaml(objects: Iterable[Object]) -> str:
    """Return all objects as one stream of documents."""
    return "---\n".join(_document(each) for each in objects)


def _document(given: Object) -> str:
    rules = given.get("rules", ())
    if not any(isinstance(rule, Reasoned) for rule in rules):
        return _dump(given)
    rest = {key: value for key, value in given.items() if key != "rules"}
    return "".join((_dump(rest), "rules:\n", *(_rule(rule) for rule in rules)))


def _rule(rule: Reasoned) -> str:
    # Short lists of words on one line: a role is read more often than written.
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
