"""How GitOps tools read a stored object: Argo CD by Lua, Flux and Helm by kstatus."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.kubernetes import REQUIRED
from tests.support.paths import ROOT

Object = dict[str, Any]
OURS = ROOT / "deploy" / "argocd"


def run_lua(script: str, obj: Object) -> Any:
    """Return what a script of Argo CD returns for an object; LuaError if it fails."""
    lupa = pytest.importorskip("lupa.lua51")
    lua = lupa.LuaRuntime(unpack_returned_tuples=True)
    lua.globals()["obj"] = lua.table_from(obj, recursive=True)
    return _plain(lupa, lua.execute(script))


def _plain(lupa: Any, value: Any) -> Any:
    if lupa.lua_type(value) != "table":
        return value
    return {key: _plain(lupa, item) for key, item in value.items()}


def argocd_health(script: str, obj: Object) -> str:
    """Return the health by a script; `error` where it fails, which Argo CD shows as Unknown."""
    lupa = pytest.importorskip("lupa.lua51")
    try:
        return str(run_lua(script, obj)["status"])
    except lupa.LuaError:
        return "error"


def tool(name: str) -> Path:
    """Return the file of a tool that hack/gitops/build has got; skip the test without it."""
    found = subprocess.run(
        [ROOT / "hack" / "gitops" / "build", "--print", name], capture_output=True, text=True
    )
    if found.returncode != 0:
        text = f"{name} is not there: run hack/gitops/build"
        pytest.fail(text) if REQUIRED else pytest.skip(text)
    return Path(found.stdout.strip())


def kstatus(objects: Sequence[Object]) -> list[str]:
    """Return how kstatus reads each object: InProgress, Failed, Current, ..."""
    text = "\n".join(json.dumps(each) for each in objects)
    answer = subprocess.run([tool("kstatus")], input=text, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    return [line.partition(":")[0] for line in answer.stdout.splitlines()]
