"""Bundle: the page as one HTML file that opens from disk and asks the network for nothing."""

from __future__ import annotations

import base64
import hashlib
import re
from graphlib import TopologicalSorter
from importlib.resources import files
from typing import Any, Final

import msgspec

_PAGE: Final = files("everynode.dashboard") / "page"
_IMPORT: Final = re.compile(r"^import (\{[^}]+\}) from '\./([\w-]+)\.js';\n", re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?=(?:const|class|function|async function) (\w+))", re.M)
_ASSETS: Final = re.compile(r'<(?:link rel="(?:icon|stylesheet)"|script type="module")[^\n]*\n')


def bundle(recording: dict[str, Any]) -> str:
    """Return the page with its style, its script and a recording in it.

    Nothing else may run: its Content-Security-Policy names the hashes of the style and of the
    script, and allows no request.
    """
    style = "\n" + _read("style.css")
    script = "\n" + bundle_modules("app")
    icon = base64.b64encode(_read("icon.svg").encode()).decode()
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<link rel="icon" href="data:image/svg+xml;base64,{icon}">\n'
        f"<style>{style}</style>\n"
    )
    tail = (
        f'<script type="application/json" id="recording">{_inert(recording)}</script>\n'
        f'<script type="module">{script}</script>\n</body>'
    )
    charset, rest = _ASSETS.sub("", _read("index.html")).split('<meta name="viewport"', 1)
    return f'{charset}{head}<meta name="viewport"{rest}'.replace("</body>", tail)


def bundle_modules(first: str) -> str:
    """Return a module and what it imports as one script, each in a scope of its own."""
    sources: dict[str, str] = {}
    imported: dict[str, list[str]] = {}
    waiting = [first]
    while waiting:
        name = waiting.pop()
        if name not in sources:
            sources[name] = _read(f"{name}.js")
            imported[name] = [each for _, each in _IMPORT.findall(sources[name])]
            waiting += imported[name]
    order = TopologicalSorter(imported).static_order()
    return "".join(_wrap_module(name, sources[name]) for name in order)


def _wrap_module(name: str, source: str) -> str:
    body = _IMPORT.sub(lambda found: f"const {found[1]} = module_{found[2]};\n", source)
    names = ", ".join(_EXPORT.findall(body))
    body = _EXPORT.sub("", body)
    return f"const module_{name} = (() => {{\n{body}\nreturn {{ {names} }};\n}})();\n"


def _read(name: str) -> str:
    return (_PAGE / name).read_text(encoding="utf-8")


def _inert(value: object) -> str:
    """Return JSON that cannot end the element that it stands in."""
    return msgspec.json.encode(value).decode().replace("<", "\\u003c")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
