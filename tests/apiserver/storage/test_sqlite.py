from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import msgspec
import pytest

from everynode.apiserver.server import Server, restore_store
from everynode.apiserver.storage.sqlite import DATABASE_FILE, DataError, SqliteJournal
from everynode.apiserver.storage.store import Store
from everynode.apiserver.verbs.dispatch import Api
from everynode.kube.requests import Request
from tests.support.api_client import (
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


def opened(folder: Path) -> tuple[Cluster, SqliteJournal]:
    store, journal = Store(), SqliteJournal(folder)
    restore_store(store, journal)
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


async def test_a_watch_from_before_a_restart_gets_410_gone(tmp_path: Path) -> None:
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
    uri = f"file:{tmp_path / DATABASE_FILE}?mode=ro"
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
    journal = SqliteJournal(tmp_path)
    with pytest.raises(DataError, match="is in use by another cluster: stop that one"):
        SqliteJournal(tmp_path)
    await journal.close()


def test_folder_that_cannot_be_made_gives_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot be used"):
        SqliteJournal(tmp_path / "file" / "below")


def test_file_of_something_else_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / DATABASE_FILE).write_bytes(
        b"this is no database at all, but some text of that length"
    )
    with pytest.raises(DataError, match="is not a cluster's data"):
        SqliteJournal(tmp_path)


async def test_data_of_another_format_is_not_touched(tmp_path: Path) -> None:
    await SqliteJournal(tmp_path).close()
    database = sqlite3.connect(tmp_path / DATABASE_FILE)
    with database:
        database.execute("UPDATE facts SET value = '99' WHERE name = 'format'")
    database.close()
    with pytest.raises(DataError, match="another version of everynode"):
        SqliteJournal(tmp_path)


async def test_disk_that_fails_stops_the_server_instead_of_losing_writes(tmp_path: Path) -> None:
    store, journal = Store(), SqliteJournal(tmp_path)
    restore_store(store, journal)
    api = Api(clock=StillClock(), store=store)
    journal.flush()
    journal._database.execute("DROP TABLE objects")
    request = Request("POST", MAPS, body=b'{"metadata":{"name":"a"}}')
    answer = Answer(await api.handle(request))
    assert answer.status == 500
    assert "cannot write to" in answer.message
    assert (await api.handle(Request("GET", MAPS))).status == 500
    await journal.close()


def filled(folder: Path) -> Path:
    """A data folder with something in it; returns its database."""
    server = Server(clock=StillClock(), data=folder)
    server._release_data_folder()
    return folder / DATABASE_FILE


def change(path: Path, statement: str, *values: object) -> None:
    database = sqlite3.connect(path)
    with database:
        database.execute(statement, values)
    database.close()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b'{"metadata":null}',
        b'{"metadata":{}}',
        b'{"metadata":{"name":5,"resourceVersion":"1"}}',
        b'{"metadata":{"name":"a"}}',
        b'{"metadata":{"name":"a","labels":{"x":1},"resourceVersion":"1"}}',
        b'{"a":' * 5000,
        "text",
        None,
    ],
)
def test_object_that_cannot_be_read_gives_one_clear_error(
    tmp_path: Path, body: bytes | str | None
) -> None:
    path = filled(tmp_path)
    kept = b"" if body is None else body
    number = "x" if body is None else 3
    statement = "INSERT INTO objects VALUES ('configmaps', 'default/a', ?, ?)"
    change(path, statement, number, kept)
    with pytest.raises(DataError, match=r"cluster\.db is damaged: .*configmaps.*choose") as caught:
        Server(clock=StillClock(), data=tmp_path)
    assert "\n" not in str(caught.value)
    # Nothing is kept open: another attempt gets the same error.
    with pytest.raises(DataError, match="is damaged"):
        Server(clock=StillClock(), data=tmp_path)


@pytest.mark.parametrize("version", ["", "x", "1e3", "9" * 5000])
def test_version_that_cannot_be_read_gives_one_clear_error(tmp_path: Path, version: str) -> None:
    path = filled(tmp_path)
    change(path, "UPDATE facts SET value = ? WHERE name = 'version'", version)
    with pytest.raises(DataError, match="its last version cannot be read"):
        Server(clock=StillClock(), data=tmp_path)


def test_stored_definition_that_cannot_be_served_is_named_and_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = filled(tmp_path)
    body = b'{"metadata":{"name":"a","resourceVersion":"3"},"spec":[]}'
    statement = "INSERT INTO objects VALUES (?, 'a', 3, ?)"
    change(path, statement, "customresourcedefinitions.apiextensions.k8s.io", body)
    Server(clock=StillClock(), data=tmp_path)._release_data_folder()
    assert "the CustomResourceDefinition a cannot be served" in caplog.text


def test_damaged_page_gives_one_clear_error(tmp_path: Path) -> None:
    path = filled(tmp_path)
    raw = bytearray(path.read_bytes())
    page = 4096
    raw[page:] = b"\xa5" * (len(raw) - page)
    path.write_bytes(bytes(raw))
    with pytest.raises(DataError, match=r"cluster\.db") as caught:
        Server(clock=StillClock(), data=tmp_path)
    assert "\n" not in str(caught.value)


async def test_full_disk_refuses_the_write_and_keeps_what_was_there(tmp_path: Path) -> None:
    store, journal = Store(), SqliteJournal(tmp_path)
    restore_store(store, journal)
    api = Api(clock=StillClock(), store=store)
    journal.flush()
    [(pages,)] = journal._database.execute("PRAGMA page_count").fetchall()
    journal._database.execute(f"PRAGMA max_page_count = {pages}")
    big = msgspec.json.encode(config_map("big", x="y" * 500_000))
    answer = Answer(await api.handle(Request("POST", MAPS, body=big)))
    assert (answer.status, answer.body["reason"]) == (500, "InternalError")
    assert "make room on the disk" in answer.message
    await journal.close()
    again, journal = opened(tmp_path)
    assert (await again.get(f"{MAPS}/big")).status == 404
    assert (await again.get("/api/v1/namespaces/default")).status == 200
    await journal.close()


def test_disk_that_is_full_at_the_start_gives_one_clear_error(tmp_path: Path) -> None:
    store, journal = Store(), SqliteJournal(tmp_path)
    restore_store(store, journal)
    Api(clock=StillClock(), store=store)
    journal._database.execute("PRAGMA max_page_count = 1")
    with pytest.raises(DataError, match=r"cannot write to .*make room on the disk"):
        journal.flush()
    journal.release()
