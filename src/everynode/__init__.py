"""Everynode: one pod on every node, rolled out safely. For use from Python see docs/python.md."""

import importlib
from typing import Any

__version__ = "0.1.0"

# What Python programs use, imported when it is used: the command line imports this package too.
_LAZY_IMPORTS = {"EmbeddedCluster": "everynode.embedded_cluster", "forecast": "everynode.forecast"}


def __getattr__(name: str) -> Any:
    if name not in _LAZY_IMPORTS:
        raise AttributeError(f"module 'everynode' has no attribute {name!r}")
    module = importlib.import_module(_LAZY_IMPORTS[name])
    return getattr(module, name, module)


def __dir__() -> list[str]:
    return sorted([*globals(), *_LAZY_IMPORTS])
