"""Adding a cluster to a kubeconfig."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from everynode.cli.access.kubeconfig import (
    add_cluster,
    check_writable,
    remove_cluster,
    replaced_server,
)
from everynode.errors import UserError

Object = dict[str, Any]


def config(server: str = "https://127.0.0.1:1", name: str = "everynode") -> Object:
    return {
        "clusters": [{"name": name, "cluster": {"server": server}}],
        "users": [{"name": name, "user": {"token": "t"}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }


def read(path: Path) -> Object:
    return dict(yaml.safe_load(path.read_text()))


def test_a_new_file_has_the_cluster_as_its_current_one(tmp_path: Path) -> None:
    path = tmp_path / "config"
    assert add_cluster(path, config())
    assert read(path)["current-context"] == "everynode"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["config"]


def test_a_second_time_replaces_the_first(tmp_path: Path) -> None:
    path = tmp_path / "config"
    assert replaced_server(path, config()) == ""
    add_cluster(path, config("https://127.0.0.1:1"))
    assert replaced_server(path, config()) == "https://127.0.0.1:1"
    assert add_cluster(path, config("https://127.0.0.1:2"))
    assert read(path)["clusters"] == config("https://127.0.0.1:2")["clusters"]


def test_other_clusters_and_the_choice_among_them_stay(tmp_path: Path) -> None:
    path = tmp_path / "config"
    add_cluster(path, {**config(name="work"), "preferences": {"colors": True}})
    assert not add_cluster(path, config())
    found = read(path)
    assert [each["name"] for each in found["users"]] == ["work", "everynode"]
    assert found["current-context"] == "work"


def test_removing_the_only_cluster_deletes_the_file(tmp_path: Path) -> None:
    path = tmp_path / "config"
    add_cluster(path, config())
    assert remove_cluster(path, config()) == f"the kubeconfig {path}"
    assert list(tmp_path.iterdir()) == []
    assert remove_cluster(path, config()) == ""


def test_removing_a_cluster_keeps_the_others(tmp_path: Path) -> None:
    path = tmp_path / "config"
    add_cluster(path, config(name="work"))
    before = read(path)
    add_cluster(path, config())
    assert remove_cluster(path, config()) == f"the context everynode from the kubeconfig {path}"
    assert read(path) == before


def test_the_chosen_context_is_unset_when_it_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "config"
    add_cluster(path, config())
    add_cluster(path, config(name="work"))
    remove_cluster(path, config())
    assert read(path)["current-context"] == ""


def test_a_cluster_that_was_started_later_under_the_same_name_stays(tmp_path: Path) -> None:
    path = tmp_path / "config"
    add_cluster(path, config("https://127.0.0.1:1"))
    add_cluster(path, config("https://127.0.0.1:2"))
    assert remove_cluster(path, config("https://127.0.0.1:1")) == ""
    assert read(path)["clusters"] == config("https://127.0.0.1:2")["clusters"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "config")
    add_cluster(tmp_path / "link", config())
    assert (tmp_path / "link").is_symlink()
    assert read(tmp_path / "config")["current-context"] == "everynode"


@pytest.mark.parametrize("text", ["just words", "clusters: 3", "users: [me]", "a: [", "[]"])
def test_a_file_that_is_something_else_is_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(UserError, match="is not a kubeconfig"):
        add_cluster(path, config())
    assert path.read_text() == text


def test_a_folder_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "config"
    with pytest.raises(UserError, match=r"there is no folder .*missing; choose another"):
        check_writable(path)
    with pytest.raises(UserError, match="cannot write the kubeconfig"):
        add_cluster(path, config())
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_file_is_neither_read_nor_replaced(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(UserError, match="it is not a file; choose another"):
        check_writable(path)
    with pytest.raises(UserError, match="it is not a file; choose another"):
        add_cluster(path, config())
    assert path.is_fifo()


def test_a_file_that_can_be_added_to_passes(tmp_path: Path) -> None:
    check_writable(tmp_path / "config")
    add_cluster(tmp_path / "config", config())
    check_writable(tmp_path / "config")
    assert [each.name for each in tmp_path.iterdir()] == ["config"]


def test_an_empty_file_is_a_new_one(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.touch()
    assert add_cluster(path, config())


def test_a_link_laid_where_the_file_is_written_first_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / f".config.{os.getpid()}").symlink_to(victim)
    add_cluster(tmp_path / "config", config())
    assert victim.read_text() == "mine"
    assert (tmp_path / "config").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "content",
    [b"[" * 100_000, b"- " * 50_000, b"a: \xff", b"a: \0", b"&a [*a]", b"x" * 4_000_000],
    ids=["brackets", "dashes", "utf-8", "zero", "itself", "long"],
)
def test_a_hostile_file_is_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "config"
    path.write_bytes(content)
    with pytest.raises(UserError, match="is not a kubeconfig") as caught:
        add_cluster(path, config())
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == content


@pytest.mark.parametrize("umask", [0o000, 0o777])
def test_only_its_owner_can_read_the_file(tmp_path: Path, umask: int) -> None:
    path = tmp_path / "config"
    path.write_text("")
    path.chmod(0o644)
    before = os.umask(umask)
    try:
        add_cluster(path, config())
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o600
