"""The data folder: every change is in SQLite before anybody hears of it.

Changes are taken in while the last ones are being written, and the next transaction writes all of
them: one fsync for many writes. When a write fails the journal stops for good; going on would
acknowledge what is lost.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from everynode.cluster.store import Change, Store

FILE: Final = "cluster.db"
_MOST_WAITING: Final = 20_000
_FORMAT: Final = "1"
_TABLES: Final = (
    """CREATE TABLE IF NOT EXISTS objects (
        collection TEXT NOT NULL,
        key TEXT NOT NULL,
        version INTEGER NOT NULL,
        body BLOB NOT NULL,
        PRIMARY KEY (collection, key)
    ) WITHOUT ROWID""",
    "CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
)


class DataError(Exception):
    """The data folder cannot be used; the message says why and what to do."""


class Journal:
    """Writes the changes of a store, in groups."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._waiting: list[tuple[str, Change]] = []
        self._store: Store | None = None
        self._task: asyncio.Task[None] | None = None
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="journal")
        self._room = asyncio.Event()
        self._room.set()
        self.error: Exception | None = None
        self._database = _open(folder)

    def rows(self) -> Iterator[tuple[str, int, bytes]]:
        """Collection, version and body of all that was kept."""
        yield from self._database.execute(
            "SELECT collection, version, body FROM objects ORDER BY collection, key"
        )

    @property
    def version(self) -> int:
        """The last version that was kept; zero for a new folder."""
        row = self._database.execute("SELECT value FROM facts WHERE name = 'version'").fetchone()
        return int(row[0]) if row else 0

    def attach(self, store: Store) -> None:
        """Take in everything the store does from now on."""
        self._store = store
        store.journal = self

    def append(self, collection: str, change: Change) -> None:
        """Take a change in; it is kept once the store's `durable` has passed its version."""
        self._waiting.append((collection, change))
        if len(self._waiting) >= _MOST_WAITING:
            self._room.clear()
        if self._task is None:
            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:
                return  # before the loop runs, `flush` does the work
            self._task = loop.create_task(self._drain())

    async def room(self) -> None:
        """Wait until another change may be made."""
        await self._room.wait()

    def flush(self) -> None:
        """Write everything now, without a loop."""
        batch, self._waiting = self._waiting, []
        if batch:
            self._write(batch)
            self._published(batch)

    async def close(self) -> None:
        """Write what is left and let go of the folder."""
        if self._task is not None:
            await self._task
        if self.error is None:
            self.flush()
        self._pool.shutdown()
        self._database.close()

    async def _drain(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._waiting and self.error is None:
                batch, self._waiting = self._waiting, []
                self._room.set()
                await loop.run_in_executor(self._pool, self._write, batch)
                self._published(batch)
        except sqlite3.Error as error:
            self.error = DataError(f"cannot write to {self._path}: {error}")
            self._room.set()
            if self._store is not None:
                self._store.history.wake()
                self._store.fail(self.error)
        finally:
            self._task = None

    def _published(self, batch: list[tuple[str, Change]]) -> None:
        if self._store is not None:
            self._store.publish(batch[-1][1].version)

    def _write(self, batch: list[tuple[str, Change]]) -> None:
        """One transaction; of several changes to one object only the last is written."""
        last = {(collection, change.record.key): change for collection, change in batch}
        gone = [key for key, change in last.items() if change.type == "DELETED"]
        kept = [
            (collection, key, change.version, change.record.body)
            for (collection, key), change in last.items()
            if change.type != "DELETED"
        ]
        database = self._database
        database.execute("BEGIN IMMEDIATE")
        try:
            database.executemany("DELETE FROM objects WHERE collection = ? AND key = ?", gone)
            database.executemany("INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?)", kept)
            version = str(batch[-1][1].version)
            database.execute("INSERT OR REPLACE INTO facts VALUES ('version', ?)", (version,))
            database.execute("COMMIT")
        except sqlite3.Error:
            if database.in_transaction:
                database.execute("ROLLBACK")
            raise


def _open(folder: Path) -> sqlite3.Connection:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        database = sqlite3.connect(
            folder / FILE, isolation_level=None, check_same_thread=False, timeout=0.2
        )
    except (OSError, sqlite3.Error) as error:
        raise DataError(f"the data folder {folder} cannot be used: {error}") from None
    try:
        _prepare(database, folder)
    except BaseException:
        database.close()
        raise
    return database


def _prepare(database: sqlite3.Connection, folder: Path) -> None:
    try:
        database.execute("PRAGMA locking_mode = EXCLUSIVE")
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        database.execute("BEGIN EXCLUSIVE")
        for statement in _TABLES:
            database.execute(statement)
        _check_format(database, folder)
        database.execute("COMMIT")
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):
            raise DataError(f"the data folder {folder} cannot be used: {error}") from None
        raise DataError(
            f"the data folder {folder} is in use by another cluster: "
            "stop that one, or choose another folder"
        ) from None
    except sqlite3.DatabaseError as error:
        raise DataError(f"{folder / FILE} is not a cluster's data: {error}") from None


def _check_format(database: sqlite3.Connection, folder: Path) -> None:
    row = database.execute("SELECT value FROM facts WHERE name = 'format'").fetchone()
    if row is None:
        database.execute("INSERT INTO facts VALUES ('format', ?)", (_FORMAT,))
    elif row[0] != _FORMAT:
        raise DataError(
            f"the data folder {folder} was written by another version of everynode "
            f"(format {row[0]}, this one reads {_FORMAT}): choose another folder"
        )
