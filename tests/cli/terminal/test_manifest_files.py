from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from everynode.cli.terminal.manifest_files import read_daemonsets
from everynode.errors import UserError
from everynode.sim.plans.manifests import daemonset


def write(folder: Path, *objects: object) -> str:
    path = folder / "given.yaml"
    path.write_text(yaml.safe_dump_all(objects), encoding="utf-8")
    return str(path)


def test_daemonsets_are_found_among_other_things(tmp_path: Path) -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}}
    name = write(tmp_path, service, None, daemonset("one"), daemonset("two"))
    assert [each["metadata"]["name"] for each in read_daemonsets([name])] == ["one", "two"]


def test_lists_and_json_are_read(tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    path.write_text(json.dumps({"kind": "List", "items": [daemonset()]}), encoding="utf-8")
    assert read_daemonsets([str(path)]) == [daemonset()]


def test_dates_and_numbers_where_text_belongs_are_read_as_kubectl_reads_them(
    tmp_path: Path,
) -> None:
    path = tmp_path / "dates.yaml"
    text = yaml.safe_dump(daemonset() | {"metadata": {"name": "a", "annotations": {"on": "DATE"}}})
    path.write_text(text.replace("'on'", "7").replace("DATE", "2026-13-45"), encoding="utf-8")
    [read] = read_daemonsets([str(path)])
    assert read["metadata"]["annotations"] == {"7": "2026-13-45"}


def test_several_files_are_read_in_order(tmp_path: Path) -> None:
    name = write(tmp_path, daemonset())
    assert len(read_daemonsets([name, name])) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [b", "line 2: not valid YAML"),
        ("kind: List\nitems: 7", "items: not a list"),
        ("kind: List\nitems: {a: 1}", "items: not a list"),
        ("kind: Service", "holds no DaemonSet"),
        ("just words", "holds no DaemonSet"),
        ("", "holds no DaemonSet"),
        ("a: " + "[" * 50_000, "line 1: not valid YAML: exceeded max depth"),
        ("- " * 50_000, "exceeded max depth"),
        ("a: &a [*a]", "contains itself"),
        ("a: \0", "not valid YAML: .*control characters"),
        ("a: .inf", "JSON has no number inf"),
        ("a: .nan", "JSON has no number nan"),
        ("a: 0x" + "f" * 300, "longer than any field"),
        ("a: " + "1" * 5_000, "found a number that is too long"),
        ("a: 1" + ":59" * 200_000, "found a number that is too long"),
        ('a: "\\ud800"', "not valid YAML"),
        ("? [a]\n: b", "not valid YAML"),
        (
            "a0: &a0 [0, 0, 0, 0, 0, 0, 0, 0, 0, 0]\n"
            + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)),
            "document contains excessive aliasing",
        ),
        ("a: !!timestamp 2026-99-99", "not valid YAML"),
        ("a: !!binary aGVsbG8=", "bytes is not a JSON type"),
        ("kind: DaemonSet", "metadata.name"),
        ("kind: DaemonSet\nmetadata: {name: a}", "spec: the DaemonSet has none"),
        ("kind: DaemonSet\nmetadata: {name: a}\nspec: {}", "apiVersion"),
        ("kind: DaemonSet\napiVersion: apps/v2\nmetadata: {name: a}\nspec: {}", "apps/v2"),
        ("kind: DaemonSet\napiVersion: apps/v1\nmetadata: {name: a}\nspec: {}", "selector"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line(
    text: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=message) as caught:
        read_daemonsets([str(path)])
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_files_that_are_not_there_or_no_text_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file"):
        read_daemonsets([str(tmp_path / "missing.yaml")])
    path = tmp_path / "binary"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="invalid UTF-8"):
        read_daemonsets([str(path)])
    with pytest.raises(UserError, match="Is a directory"):
        read_daemonsets([str(tmp_path)])
    with pytest.raises(UserError, match="embedded null byte"):
        read_daemonsets(["a\0b"])
    with pytest.raises(UserError, match="/dev/zero: not valid YAML: it is longer than"):
        read_daemonsets(["/dev/zero"])
