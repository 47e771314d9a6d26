from __future__ import annotations

import base64
import hashlib
import re
from importlib.resources import files

import pytest

from everynode.dashboard.bundle import bundle, bundle_modules

PAGE = files("everynode.dashboard") / "page"
MODULES = sorted(each.name for each in PAGE.iterdir() if each.name.endswith(".js"))


def test_the_policy_lets_nothing_run_but_the_page_s_own_script() -> None:
    page = bundle({"title": "</script><script>alert(1)</script>"})
    assert "<script>alert" not in page
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'")
    scripts = re.findall(r"<script([^>]*)>(.*?)</script>", page, re.S)
    assert len(scripts) == 2
    assert 'type="application/json"' in scripts[0][0]
    digest = base64.b64encode(hashlib.sha256(scripts[1][1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy[1]
    assert re.search(r'(?:src|href)="(?!#|data:)', page) is None


def test_every_import_and_export_of_a_module_is_bundled() -> None:
    script = bundle_modules("app")
    assert re.search(r"^(?:import|export)\b", script, re.M) is None
    assert [name for name in MODULES if f"module_{name.removesuffix('.js')} " not in script] == []


@pytest.mark.parametrize("name", MODULES)
def test_text_of_the_cluster_is_never_markup(name: str) -> None:
    source = (PAGE / name).read_text(encoding="utf-8")
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function"
    assert re.search(forbidden, source) is None
    assert source.count("\n") <= 500
