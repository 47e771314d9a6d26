"""Secrets are written whole or not at all, and for their owner alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from everynode.private_files import write_private_file


def test_a_file_is_replaced_at_once_and_private(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("old")
    path.chmod(0o644)
    write_private_file(path, b"new")
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_in_its_place_is_replaced_and_not_followed(tmp_path: Path) -> None:
    victim, path = tmp_path / "victim", tmp_path / "key"
    victim.write_text("mine")
    path.symlink_to(victim)
    write_private_file(path, b"secret")
    assert victim.read_text() == "mine"
    assert not path.is_symlink()


def test_what_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "key").mkdir()
    (tmp_path / "key" / "inside").touch()
    with pytest.raises(OSError, match="directory"):
        write_private_file(tmp_path / "key", b"secret")
    assert [each.name for each in tmp_path.iterdir()] == ["key"]
