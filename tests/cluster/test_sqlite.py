from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from everynode.cluster.rest import Api
from everynode.cluster.server import restore
from everynode.cluster.sqlite import FILE, DataError, Journal
from everynode.cluster.store import Store
from everynode.kube.requests import Request
from tests.cluster.asking import (
    DEFINITIONS,
    MAPS,
    PODS,
    Answer,
    Cluster,
    StillClock,
    bound,
    config_map,
    definition,
)


def opened(folder: Path) -> tuple[Cluster, Journal]:
    store, journal = Store(), Journal(folder)
    restore(store, journal)
    cluster = Cluster(store)
    journal.flush()
    return cluster, journal


async def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    cluster, journal = opened(tmp_path)
    await cluster.create(MAPS, config_map("kept", x="1"))
    await cluster.create(MAPS, config_map("gone"))
    await cluster.delete(f"{MAPS}/gone")
    await cluster.create(PODS, bound("p"))
    version = cluster.api.store.version
    before = await cluster.read(f"{MAPS}/kept")
    await journal.close()

    again, journal = opened(tmp_path)
    assert await again.read(f"{MAPS}/kept") == before
    assert (await again.get(MAPS)).names == ["kept"]
    assert (await again.get(f"{PODS}?fieldSelector=spec.nodeName%3Dn1")).names == ["p"]
    assert again.api.store.version == version
    made = await again.create(MAPS, config_map("new"))
    assert int(made["metadata"]["resourceVersion"]) == version + 1
    await journal.close()


async def test_custom_kinds_are_served_after_a_restart(tmp_path: Path) -> None:
    cluster, journal = opened(tmp_path)
    await cluster.create(DEFINITIONS, definition())
    path = "/apis/example.test/v1/namespaces/default/widgets"
    named = {"apiVersion": "example.test/v1", "kind": "Widget"}
    await cluster.create(path, {**named, "metadata": {"name": "w"}, "spec": {"size": 1}})
    await journal.close()
    again, journal = opened(tmp_path)
    assert (await again.get(path)).names == ["w"]
    await journal.close()


async def test_watch_from_an_earlier_life_is_told_to_begin_anew(tmp_path: Path) -> None:
    cluster, journal = opened(tmp_path)
    await cluster.create(MAPS, config_map("a"))
    await journal.close()
    again, journal = opened(tmp_path)
    watch = await again.watch(f"{MAPS}?resourceVersion=3")
    kind, status = await watch.event()
    assert (kind, status["code"]) == ("ERROR", 410)
    current = await again.watch(f"{MAPS}?resourceVersion={again.api.store.version}")
    await again.create(MAPS, config_map("b"))
    assert await current.events(1) == [("ADDED", "b")]
    await journal.close()


async def test_answer_comes_after_the_write_is_on_disk(tmp_path: Path) -> None:
    cluster, journal = opened(tmp_path)
    made = await cluster.create(MAPS, config_map("a"))
    uri = f"file:{tmp_path / FILE}?mode=ro"
    await journal.close()
    with sqlite3.connect(uri, uri=True) as database:
        [(version,)] = database.execute(
            "SELECT version FROM objects WHERE collection = 'configmaps'"
        ).fetchall()
    database.close()
    assert version == int(made["metadata"]["resourceVersion"])


async def test_many_writers_share_a_transaction(tmp_path: Path) -> None:
    cluster, journal = opened(tmp_path)
    answers = await asyncio.gather(
        *(cluster.post(MAPS, config_map(f"m{number}")) for number in range(200))
    )
    assert {answer.status for answer in answers} == {201}
    await journal.close()
    again, journal = opened(tmp_path)
    assert len((await again.get(MAPS)).names) == 200
    await journal.close()


async def test_folder_in_use_gives_one_clear_error(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    with pytest.raises(DataError, match="is in use by another cluster: stop that one"):
        Journal(tmp_path)
    await journal.close()


def test_folder_that_cannot_be_made_gives_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot be used"):
        Journal(tmp_path / "file" / "below")


def test_file_of_something_else_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"this is no database at all, but some text of that length")
    with pytest.raises(DataError, match="is not a cluster's data"):
        Journal(tmp_path)


async def test_data_of_another_format_is_not_touched(tmp_path: Path) -> None:
    await Journal(tmp_path).close()
    database = sqlite3.connect(tmp_path / FILE)
    with database:
        database.execute("UPDATE facts SET value = '99' WHERE name = 'format'")
    database.close()
    with pytest.raises(DataError, match="another version of everynode"):
        Journal(tmp_path)


async def test_disk_that_fails_stops_the_server_instead_of_losing_writes(tmp_path: Path) -> None:
    store, journal = Store(), Journal(tmp_path)
    restore(store, journal)
    api = Api(clock=StillClock(), store=store)
    journal.flush()
    journal._database.execute("DROP TABLE objects")
    request = Request("POST", MAPS, body=b'{"metadata":{"name":"a"}}')
    answer = Answer(await api.handle(request))
    assert answer.status == 500
    assert "cannot write to" in answer.message
    assert (await api.handle(Request("GET", MAPS))).status == 500
    await journal.close()
