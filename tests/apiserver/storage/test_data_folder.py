from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from everynode.apiserver.server import Server
from everynode.clock import SystemClock
from everynode.private_files import make_private
from tests.apiserver.transport.test_https import serving
from tests.support.api_client import MAPS


@pytest.fixture(params=[0o000, 0o022, 0o777])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("umask")
async def test_nothing_in_a_new_data_folder_can_be_read_by_others(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with serving(Server(clock=SystemClock(), data=data)) as client:
        await client.ask("POST", MAPS, {"metadata": {"name": "a"}})
        assert mode(data) == 0o700
        files = sorted(data.iterdir())
        assert [file.name for file in files][:2] == ["cluster.db", "cluster.db-wal"]
        assert {file.name: oct(mode(file)) for file in files if mode(file) != 0o600} == {}


async def test_what_an_earlier_version_left_readable_becomes_private(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with serving(Server(clock=SystemClock(), data=data)):
        pass
    data.chmod(0o755)
    for name in ("cluster.db", "identity.json"):
        (data / name).chmod(0o644)
    async with serving(Server(clock=SystemClock(), data=data)):
        assert mode(data) == 0o700
        assert {oct(mode(file)) for file in data.iterdir()} == {"0o600"}


def test_folder_that_holds_other_things_keeps_its_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "letter.txt").write_text("not ours")
    (tmp_path / "letter.txt").chmod(0o644)
    make_private(tmp_path, "cluster.db")
    assert mode(tmp_path) == 0o755
    assert mode(tmp_path / "letter.txt") == 0o644
    assert mode(tmp_path / "cluster.db") == 0o600
