"""An API server for people: a store, perhaps a data folder, and HTTPS on loopback."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any, Final, NoReturn

from everynode.clock import Clock
from everynode.cluster.builtin import builtin
from everynode.cluster.certificates import Identity, identity_in, new_identity
from everynode.cluster.https import HttpsServer
from everynode.cluster.local import LocalTransport
from everynode.cluster.rest import Api
from everynode.cluster.reviews import USER
from everynode.cluster.sqlite import DataError, Journal
from everynode.cluster.store import Store, read_record

Object = dict[str, Any]

HOST: Final = "127.0.0.1"
_NAME: Final = "everynode"


class Server:
    """Everything of a cluster that is not a node or a controller."""

    def __init__(self, *, clock: Clock, data: Path | None = None) -> None:
        store = Store()
        self._journal = Journal(data) if data is not None else None
        if self._journal is not None:
            restore(store, self._journal)
        self.identity = _identity(data, clock)
        self.api = Api(clock=clock, store=store, authority=self.identity.authority)
        if self._journal is not None:
            self._journal.flush()
        self._https = HttpsServer(self.api, token=self.identity.token, clock=clock)

    @property
    def transport(self) -> LocalTransport:
        """The way in for whoever lives in the same process."""
        return LocalTransport(self.api)

    @property
    def url(self) -> str:
        """Where the server is, once it has started."""
        return f"https://{HOST}:{self._https.port}"

    async def start(self, *, port: int = 0) -> None:
        """Listen; raises PortError with what to do about it."""
        await self._https.start(host=HOST, port=port, context=self.identity.context())

    async def stop(self) -> None:
        """Stop listening and write down what is left."""
        await self._https.stop()
        if self._journal is not None:
            await self._journal.close()

    async def broken(self) -> NoReturn:
        """Wait until the data folder can no longer be written, then raise DataError.

        From then on every request is refused; the process had better end.
        """
        raise await self.api.store.failure()

    def kubeconfig(self) -> Object:
        """What kubectl needs to talk to this server."""
        identity = self.identity
        return kubeconfig(self.url, authority=identity.authority.encode(), token=identity.token)


def kubeconfig(url: str, *, authority: bytes, token: str) -> Object:
    """What kubectl needs to talk to a server, with one cluster, one user and one context."""
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


def _identity(data: Path | None, clock: Clock) -> Identity:
    if data is None:
        return new_identity(clock)
    try:
        return identity_in(data, clock)
    except OSError as error:
        raise DataError(f"the data folder {data} cannot be used: {error.strerror}") from None


def restore(store: Store, journal: Journal) -> None:
    """Fill a store with what a journal kept, and let the journal keep what comes."""
    rules = {kind.storage: kind.rules for kind in builtin() if not kind.stored_as}
    for collection, version, body in journal.rows():
        known = rules.get(collection)
        record = read_record(body, version, known.selectable if known else None)
        store.restore(store.collection(collection), record)
    store.resume(journal.version)
    journal.attach(store)
