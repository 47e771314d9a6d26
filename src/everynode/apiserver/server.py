"""Embedded API server: a store, an optional data folder, and HTTPS on loopback."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any, Final, NoReturn

from everynode.apiserver.resources.builtin import builtin_kinds
from everynode.apiserver.storage.sqlite import DataError, SqliteJournal, damaged_file_error
from everynode.apiserver.storage.store import Store, decode_record
from everynode.apiserver.transport.certificates import (
    ServerIdentity,
    load_or_create_identity,
    new_identity,
)
from everynode.apiserver.transport.connections import ClientTimeouts
from everynode.apiserver.transport.https import HttpsServer
from everynode.apiserver.transport.local import LocalTransport
from everynode.apiserver.verbs.dispatch import Api
from everynode.apiserver.verbs.self_reviews import USER
from everynode.clock import Clock
from everynode.log_text import clean, describe

Object = dict[str, Any]

HOST: Final = "127.0.0.1"
_NAME: Final = "everynode"


class Server:
    """One API server: store, SQLite journal (if `data` is given), identity and HTTPS listener."""

    def __init__(
        self, *, clock: Clock, data: Path | None = None, timeouts: ClientTimeouts | None = None
    ) -> None:
        store = Store()
        self._journal = SqliteJournal(data) if data is not None else None
        try:
            if self._journal is not None:
                restore_store(store, self._journal)
            self.identity = _load_identity(data, clock)
            self.api = Api(clock=clock, store=store, authority=self.identity.authority)
            if self._journal is not None:
                self._journal.flush()
        except DataError:
            self._release_data_folder()
            raise
        except Exception as error:
            self._release_data_folder()
            if self._journal is None:
                raise
            raise damaged_file_error(self._journal.path, describe(error)) from None
        self._https = HttpsServer(
            self.api, token=self.identity.token, clock=clock, timeouts=timeouts
        )

    def _release_data_folder(self) -> None:
        if self._journal is not None:
            self._journal.release()

    @property
    def transport(self) -> LocalTransport:
        """A transport for clients in the same process."""
        return LocalTransport(self.api)

    @property
    def url(self) -> str:
        """The server's URL; valid after `start`."""
        return f"https://{HOST}:{self._https.port}"

    async def start(self, *, port: int = 0) -> None:
        """Listen for HTTPS; port 0 takes any free one. Raises PortError, which says what to do."""
        await self._https.start(host=HOST, port=port, context=self.identity.ssl_context())

    async def stop(self) -> None:
        """Stop listening, then write pending changes to the data folder."""
        await self._https.stop()
        if self._journal is not None:
            await self._journal.close()

    async def broken(self) -> NoReturn:
        """Wait until the data folder can no longer be written, then raise DataError.

        From then on every request fails with 500, so the process should exit.
        """
        raise await self.api.store.wait_for_failure()

    def kubeconfig(self) -> Object:
        """Return the kubeconfig of this server."""
        identity = self.identity
        return kubeconfig(self.url, authority=identity.authority.encode(), token=identity.token)


def kubeconfig(url: str, *, authority: bytes, token: str) -> Object:
    """Return a kubeconfig with one cluster, one user and one context."""
    trusted = base64.b64encode(authority).decode()
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": _NAME, "cluster": {"server": url, "certificate-authority-data": trusted}}
        ],
        "users": [{"name": USER, "user": {"token": token}}],
        "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": USER}}],
        "current-context": _NAME,
    }


def _load_identity(data: Path | None, clock: Clock) -> ServerIdentity:
    if data is None:
        return new_identity(clock)
    try:
        return load_or_create_identity(data, clock)
    except OSError as error:
        raise DataError(f"the data folder {data} cannot be used: {error.strerror}") from None


def restore_store(store: Store, journal: SqliteJournal) -> None:
    """Load a journal's objects into an empty store, then journal the store's further changes."""
    strategy = {kind.storage: kind.strategy for kind in builtin_kinds() if not kind.stored_as}
    for collection, version, body in journal.rows():
        known = strategy.get(collection)
        try:
            record = decode_record(body, version, known.selectable if known else None)
        except Exception as error:  # a damaged row can raise anything
            why = f"an object of {clean(str(collection))} cannot be read ({describe(error)})"
            raise damaged_file_error(journal.path, why) from None
        store.restore(store.collection(collection), record)
    store.resume(journal.version)
    journal.attach(store)
