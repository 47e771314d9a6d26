"""SQLite journal: every change is committed to the data folder before a client sees it.

Group commit: changes queue up while a transaction is being written, and the next transaction writes
all of them, so that one fsync serves many writes. When a write fails the journal stops for good;
continuing would acknowledge writes that are lost.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from everynode.apiserver.storage.store import Change, Store
from everynode.private_files import make_private

DATABASE_FILE: Final = "cluster.db"
_MAX_PENDING: Final = 20_000
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


class SqliteJournal:
    """Writes the changes of a store to SQLite, by group commit."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / DATABASE_FILE
        self._pending: list[tuple[str, Change]] = []
        self._store: Store | None = None
        self._task: asyncio.Task[None] | None = None
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="journal")
        self._capacity_free = asyncio.Event()
        self._capacity_free.set()
        self.error: Exception | None = None
        self._database = _open(folder)

    def rows(self) -> Iterator[tuple[str, int, bytes]]:
        """Yield collection, version and body of every stored object."""
        try:
            yield from self._database.execute(
                "SELECT collection, version, body FROM objects ORDER BY collection, key"
            )
        except sqlite3.Error as error:
            raise damaged_file_error(self.path, str(error)) from None

    @property
    def version(self) -> int:
        """The last committed resourceVersion; zero for a new folder."""
        query = "SELECT value FROM facts WHERE name = 'version'"
        try:
            row = self._database.execute(query).fetchone()
            return int(row[0]) if row else 0
        except (sqlite3.Error, ValueError, TypeError):
            raise damaged_file_error(self.path, "its last version cannot be read") from None

    def attach(self, store: Store) -> None:
        """Journal every further change of a store."""
        self._store = store
        store.journal = self

    def append(self, collection: str, change: Change) -> None:
        """Queue a change; it is durable once the store's `durable` has reached its version."""
        self._pending.append((collection, change))
        if len(self._pending) >= _MAX_PENDING:
            self._capacity_free.clear()
        if self._task is None:
            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:
                return  # before the loop runs, `flush` writes
            self._task = loop.create_task(self._drain())

    async def wait_for_capacity(self) -> None:
        """Wait until fewer than _MAX_PENDING changes are queued."""
        await self._capacity_free.wait()

    def flush(self) -> None:
        """Write all queued changes now, synchronously. Raises DataError."""
        batch, self._pending = self._pending, []
        if not batch:
            return
        try:
            self._write(batch)
        except sqlite3.Error as error:
            raise self._write_failed(error) from None
        self._mark_durable(batch)

    async def close(self) -> None:
        """Write queued changes and close the database."""
        if self._task is not None:
            await self._task
        try:
            if self.error is None:
                self.flush()
        finally:
            self.release()

    def release(self) -> None:
        """Close the database without writing."""
        self._pool.shutdown()
        self._database.close()

    def _write_failed(self, error: sqlite3.Error) -> DataError:
        self.error = DataError(
            f"cannot write to {self.path}: {error}; make room on the disk or give the file its "
            "permissions back, then start again, or choose another folder"
        )
        return self.error

    async def _drain(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._pending and self.error is None:
                batch, self._pending = self._pending, []
                self._capacity_free.set()
                await loop.run_in_executor(self._pool, self._write, batch)
                self._mark_durable(batch)
        except sqlite3.Error as error:
            broken = self._write_failed(error)
            self._capacity_free.set()
            if self._store is not None:
                self._store.history.wake()
                self._store.fail(broken)
        finally:
            self._task = None

    def _mark_durable(self, batch: list[tuple[str, Change]]) -> None:
        if self._store is not None:
            self._store.mark_durable(batch[-1][1].version)

    def _write(self, batch: list[tuple[str, Change]]) -> None:
        """Write a batch in one transaction; of several changes to an object only the last."""
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


def damaged_file_error(path: Path, why: str) -> DataError:
    """Return the error for a database file that cannot be read."""
    return DataError(
        f"{path} is damaged: {why}; put a copy of it in its place, or choose another folder"
    )


def _open(folder: Path) -> sqlite3.Connection:
    try:
        make_private(folder, DATABASE_FILE)
        database = sqlite3.connect(
            folder / DATABASE_FILE, isolation_level=None, check_same_thread=False, timeout=0.2
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
            raise DataError(
                f"the data folder {folder} cannot be used: {error}; make it writable and make "
                "room on the disk, or choose another folder"
            ) from None
        raise DataError(
            f"the data folder {folder} is in use by another cluster: "
            "stop that one, or choose another folder"
        ) from None
    except sqlite3.DatabaseError as error:
        raise DataError(f"{folder / DATABASE_FILE} is not a cluster's data: {error}") from None


def _check_format(database: sqlite3.Connection, folder: Path) -> None:
    row = database.execute("SELECT value FROM facts WHERE name = 'format'").fetchone()
    if row is None:
        database.execute("INSERT INTO facts VALUES ('format', ?)", (_FORMAT,))
    elif row[0] != _FORMAT:
        raise DataError(
            f"the data folder {folder} was written by another version of everynode "
            f"(format {row[0]}, this one reads {_FORMAT}): choose another folder"
        )
