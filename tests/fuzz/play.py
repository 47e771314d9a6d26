"""Playing requests to the embedded server in process, and checking what it did with them."""

from __future__ import annotations

import asyncio
import json
import logging
import traceback
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from everynode.apiserver.resources.registry import Kind
from everynode.apiserver.server import restore_store
from everynode.apiserver.storage.sqlite import SqliteJournal
from everynode.apiserver.storage.store import Store
from everynode.kube.requests import Request, Response
from everynode.kube.transport import Stream
from tests.fuzz.requests import TABLE, DrawnRequest
from tests.fuzz.runs import EndlessError, bounded
from tests.support.api_client import Cluster

Object = dict[str, Any]

METADATA_LIST: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
# What a real server, too, answers with 500; tests/fuzz/test_agreement.py asks it.
REAL_ERRORS: Final = (
    "resourceVersion: Invalid value: ",  # one object, read at a version that is no number
    "unknown patch type: ",  # a $patch directive that there is not
    "strconv.ParseUint: parsing ",  # an object that says such a version of itself
    "list element types are not identical: ",  # a strategic patch with a null among maps
    "The order in patch list:",  # another order than that of its $setElementOrder
    "failed to convert new object ",  # what is applied fits the schema and not its Go type
    "failed to create typed patch object ",  # what is applied does not fit the schema
)
_LONGEST_ANSWER: Final = 64 << 20
_TURNS: Final = 50  # of the loop until a watch has told what it knows


@dataclass
class FailureError(Exception):
    """Something that no request may bring about; `sort` stays the same while it is shrunk."""

    sort: str
    detail: str

    def __str__(self) -> str:
        return f"{self.sort}: {self.detail}"


class World:
    """An embedded server, on a data folder if there is one."""

    def __init__(self, folder: Path | None = None) -> None:
        store = Store()
        self.folder = folder
        self.journal = SqliteJournal(folder) if folder is not None else None
        if self.journal is not None:
            restore_store(store, self.journal)
        self.cluster = Cluster(store)
        if self.journal is not None:
            self.journal.flush()

    async def close(self) -> None:
        self.cluster.api.stop()
        if self.journal is not None:
            await self.journal.close()

    async def ask(self, asked: DrawnRequest) -> Response:
        """One request; a watch is read until it has nothing more to tell, then ended."""
        request = Request(
            asked.method, asked.path, asked.query, asked.body, asked.content_type, asked.accept
        )
        _CAUSES.last = ""
        try:
            with bounded():
                if asked.watch:
                    response = await _watched(await self.cluster.transport.open(request))
                else:
                    response = await self.cluster.transport.send(request)
        except EndlessError as error:
            raise FailureError("without end", f"{asked}: {error}") from None
        except Exception as error:
            raise FailureError(f"raised {_place(error)}", f"{asked}: {error!r}") from error
        _check_response(asked, response)
        return response


class Causes(logging.Handler):
    """Where in the sources the server's own errors come from, the last one at hand."""

    def __init__(self) -> None:
        super().__init__()
        self.last = ""
        logging.getLogger("everynode.apiserver.verbs.dispatch").addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        self.last = record.getMessage() if error is None else _place(error)


def _place(error: BaseException | None) -> str:
    frames = traceback.extract_tb(error.__traceback__) if error is not None else []
    ours = [frame for frame in frames if "everynode" in frame.filename]
    where = f" in {Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else ""
    return f"{type(error).__name__}{where}"


_CAUSES: Final = Causes()


def _check_response(asked: DrawnRequest, response: Response) -> None:
    if response.status >= 500 and response.status != 504:
        told = response.body.decode(errors="replace")
        known = any(f'"message":"{allowed}' in told for allowed in REAL_ERRORS)
        if not known or _CAUSES.last:
            raise FailureError(f"{response.status} {_CAUSES.last}", f"{asked}\n  {told[:600]}")
    if len(response.body) > _LONGEST_ANSWER:
        raise FailureError("an answer too long", f"{asked}: {len(response.body)} bytes")
    if asked.watch and response.status == 200:
        lines = response.body.splitlines()
    elif response.headers.get("content-type", "").startswith("application/json"):
        lines = [response.body]
    else:
        return
    for line in lines:
        try:
            json.loads(line)
        except ValueError as error:
            raise FailureError("no JSON", f"{asked}: {error}: {line[:300]!r}") from None


async def _watched(stream: Stream) -> Response:
    found = []
    try:
        if stream.status != 200:
            return Response(stream.status, await stream.read(), stream.headers)
        while True:
            reading = asyncio.ensure_future(stream.readline())
            for _ in range(_TURNS):
                await asyncio.sleep(0)
                if reading.done():
                    break
            if not reading.done():
                reading.cancel()
                break
            line = reading.result()
            if not line:
                break
            found.append(line)
    finally:
        await stream.close()
    return Response(200, b"\n".join(found), stream.headers)


async def play(asked: list[DrawnRequest], folder: Path | None = None) -> Counter[str]:
    """Ask it all, then look whether what is stored can be used; raises FailureError."""
    world = World(folder)
    counted: Counter[str] = Counter()
    try:
        for each in asked:
            response = await world.ask(each)
            counted[f"{response.status // 100}xx"] += 1
        await check_stored(world)
        if folder is not None:
            world = await _restarted(world)
        await check_ends(world)
    finally:
        await world.close()
    return counted


# --- What is stored ------------------------------------------------------------------------------


def _home(kind: Kind, namespace: str = "") -> str:
    root = f"/apis/{kind.group}" if kind.group else "/api"
    return f"{root}/{kind.version}{f'/namespaces/{namespace}' if namespace else ''}/{kind.plural}"


def _kinds(world: World) -> list[Kind]:
    kinds = [kind for kind in world.cluster.api.state.kinds if "list" in kind.verbs]
    held = world.cluster.api.store
    return [kind for kind in kinds if len(held.collection(kind.storage))]


def _path(kind: Kind, obj: Object) -> str:
    meta = obj["metadata"]
    return f"{_home(kind, meta.get('namespace', ''))}/{meta['name']}"


async def _listed(world: World, kind: Kind) -> list[Object]:
    response = await world.ask(DrawnRequest("GET", _home(kind)))
    if response.status != 200:
        raise FailureError("not listed", f"{_home(kind)}: {response.body[:300]!r}")
    items: list[Object] = json.loads(response.body)["items"]
    return items


async def check_stored(world: World) -> None:
    """Every object is read, listed, watched and shown in every form, and can be written back."""
    for kind in _kinds(world):
        items = await _listed(world, kind)
        for accept in (TABLE, METADATA_LIST):
            answer = await world.ask(DrawnRequest("GET", _home(kind), accept=accept))
            if answer.status != 200:
                raise FailureError("not shown", f"{_home(kind)} {accept} {answer.body[:300]!r}")
        await _check_watched(world, kind, items)
        for item in items:
            await _check_object(world, kind, item)


async def _check_watched(world: World, kind: Kind, items: list[Object]) -> None:
    query = (("watch", "true"), ("resourceVersion", "0"))
    answer = await world.ask(DrawnRequest("GET", _home(kind), query, watch=True))
    told = [json.loads(line)["object"] for line in answer.body.splitlines()]
    named = {"apiVersion": kind.api_version, "kind": kind.kind}
    if told != [{**named, **item} for item in items]:
        raise FailureError("watched otherwise than listed", f"{_home(kind)}: {told} {items}")


async def _check_object(world: World, kind: Kind, item: Object) -> None:
    path = _path(kind, item)
    answer = await world.ask(DrawnRequest("GET", path))
    named = {"apiVersion": kind.api_version, "kind": kind.kind}
    if answer.status != 200 or json.loads(answer.body) != {**named, **item}:
        raise FailureError("read otherwise than listed", f"{path}: {answer.body[:600]!r} {item}")
    again = await world.ask(DrawnRequest("PUT", path, body=answer.body))
    if again.status != 200 and not _may_refuse(kind, item, again):
        raise FailureError("cannot be written back", f"{path}: {again.body[:900]!r}")
    # A write that changes nothing is none. Reading a budget counts its pods.
    version = item["metadata"]["resourceVersion"]
    if again.status == 200 and json.loads(again.body)["metadata"]["resourceVersion"] != version:
        raise FailureError(
            "written back otherwise than read", f"{path}:\n  {answer.body!r}\n  {again.body!r}"
        )


def _may_refuse(kind: Kind, item: Object, again: Response) -> bool:
    """Whether a real server, too, refuses to write back what it gave.

    What was allowed before a definition was changed need not be allowed now; and an object that is
    being deleted takes no change that matters.
    """
    return again.status == 422 and kind.custom


async def check_ends(world: World) -> None:
    """Every object can be deleted, by itself, whatever became of it."""
    # Custom kinds go with their definitions.
    for kind in sorted(_kinds(world), key=lambda each: not each.custom):
        if "delete" not in kind.verbs or kind.plural == "namespaces":
            continue
        for item in await _listed(world, kind):
            if "finalizers" in item["metadata"]:
                continue
            answer = await world.ask(DrawnRequest("DELETE", _path(kind, item)))
            if answer.status not in (200, 202):
                raise FailureError(
                    "cannot be deleted", f"{_path(kind, item)}: {answer.body[:600]!r}"
                )


async def _restarted(world: World) -> World:
    """The same data folder under a new server, which must serve the same."""
    before = {_home(kind): await _listed(world, kind) for kind in _kinds(world)}
    await world.close()
    if world.journal is not None and world.journal.error is not None:
        raise FailureError("not kept", str(world.journal.error))
    try:
        again = World(world.folder)
    except Exception as error:
        raise FailureError(f"does not start again: {_place(error)}", str(error)) from error
    after = {_home(kind): await _listed(again, kind) for kind in _kinds(again)}
    if before != after:
        await again.close()
        parted = [path for path in before if before[path] != after.get(path)]
        raise FailureError("serves something else after a restart", str(parted))
    return again
