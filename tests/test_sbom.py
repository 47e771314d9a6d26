"""The bill of materials of the image is valid, current and about what is really locked."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

import everynode
from tests.support.containerfile import instructions
from tests.support.paths import ROOT
from tests.support.wheels import locked_wheels

TEXT = (ROOT / "deploy" / "sbom.cdx.json").read_text(encoding="utf-8")
BILL = json.loads(TEXT)
LIBRARIES = [each for each in BILL["components"] if each["type"] == "library"]


def locked() -> dict[str, tuple[str, set[str]]]:
    """Return the version of each locked package, and the hashes of its files."""
    text = (ROOT / "requirements" / "run.txt").read_text(encoding="utf-8")
    blocks = re.split(r"\n(?=\S)", text)
    found = [re.match(r"([\w.-]+)==(\S+)", block) for block in blocks]
    return {
        each[1]: (each[2], {*re.findall(r"sha256:(\w{64})", block)})
        for each, block in zip(found, blocks, strict=True)
        if each
    }


def test_it_follows_the_schema() -> None:
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(TEXT) is None


def test_it_lists_the_locked_packages_with_hashes_that_are_locked() -> None:
    wanted = locked()
    assert {each["name"]: each["version"] for each in LIBRARIES} == {
        name: version for name, (version, _) in wanted.items()
    }
    for each in LIBRARIES:
        assert each["purl"] == f"pkg:pypi/{each['name']}@{each['version']}"
        assert each["licenses"]
        hashes = [one for file in each["externalReferences"] for one in file["hashes"]]
        assert {one["content"] for one in hashes} <= wanted[each["name"]][1]


def test_it_names_the_version_and_the_base_image() -> None:
    assert BILL["metadata"]["component"]["purl"] == f"pkg:pypi/everynode@{everynode.__version__}"
    (base,) = [each for each in BILL["components"] if each["type"] == "container"]
    assert f"PYTHON={base['name']}:{base['version']}" in instructions("ARG")


def test_all_that_is_listed_is_needed() -> None:
    needs = {each["ref"]: each.get("dependsOn", []) for each in BILL["dependencies"]}
    reached, ahead = set(), [BILL["metadata"]["component"]["bom-ref"]]
    while ahead:
        ref = ahead.pop()
        if ref not in reached:
            reached.add(ref)
            ahead += needs[ref]
    assert reached == {*needs}


@pytest.mark.kubernetes  # as all that is downloaded before the tests
def test_it_is_what_the_wheels_give() -> None:
    for platform in ("linux/amd64", "linux/arm64"):
        locked_wheels(platform)
    line = [sys.executable, "-W", "error", str(ROOT / "hack" / "sbom"), "--check"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
