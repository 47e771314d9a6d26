"""HTTP/1.1 responses, in whatever pieces they arrive."""

from __future__ import annotations

import asyncio
import gc
import itertools
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everynode.kube.http.http1 import (
    MAX_FRAMING_BYTES,
    MAX_HEAD_BYTES,
    MAX_HEADERS,
    Connection,
    HttpError,
    IncomingResponse,
)
from everynode.kube.http.read_batching import READ_INTERVAL, ReadBatcher

PLAIN = b"HTTP/1.1 201 Created\r\nContent-Length: 5\r\nX-Note: a: b\r\n\r\nhello"
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3\r\nhel\r\n2;of=5\r\nlo\r\n0\r\nX-Trailer: 1\r\n\r\n"
)
INTERIM = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
PATIENT = INTERIM + PLAIN
STREAM = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def fed(*pieces: bytes) -> IncomingResponse:
    response = IncomingResponse()
    for piece in pieces:
        response.feed(piece)
    return response


@given(
    st.sampled_from([PLAIN, CHUNKED, PATIENT, INTERIM + CHUNKED]),
    st.lists(st.integers(0, 120), max_size=8),
)
def test_a_response_is_the_same_however_it_is_cut(data: bytes, cuts: list[int]) -> None:
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    response = fed(*[data[a:b] for a, b in itertools.pairwise(edges)])
    assert (response.complete, response.reusable, response.take()) == (True, True, b"hello")


def test_the_head_is_known_before_the_body_has_arrived() -> None:
    response = fed(PLAIN[:-2])
    assert (response.status, response.reason, response.complete) == (201, "Created", False)
    assert response.headers == {"content-length": "5", "x-note": "a: b"}
    assert response.take() == b"hel"
    response.feed(PLAIN[-2:])
    assert (response.take(), response.complete) == (b"lo", True)


def test_a_response_of_unknown_length_ends_with_its_connection() -> None:
    response = fed(b"HTTP/1.1 200 OK\r\n\r\nhel", b"lo")
    assert not response.complete
    response.end()
    assert (response.complete, response.reusable, response.take()) == (True, False, b"hello")


@pytest.mark.parametrize("data", [PLAIN[:-1], CHUNKED[:-1], PLAIN[:10]])
def test_a_response_that_breaks_off_is_never_complete(data: bytes) -> None:
    response = fed(data)
    response.end()
    assert not response.complete


@pytest.mark.parametrize(
    "data",
    [
        PLAIN + b"more",
        CHUNKED + b"more",
        PLAIN + PLAIN,
        PLAIN.replace(b"X-Note: a: b", b"Connection: close"),
        PLAIN.replace(b"X-Note: a: b", b"Connection: Close"),
        PLAIN.replace(b"X-Note: a: b", b"Connection: x, CLOSE"),
        PLAIN.replace(b"X-Note: a: b", b"Connection: close\r\nConnection: x"),
        PLAIN.replace(b"HTTP/1.1", b"HTTP/1.0"),
    ],
)
def test_a_connection_that_closes_or_sends_extra_data_is_not_used_again(data: bytes) -> None:
    response = fed(data)
    assert (response.complete, response.reusable) == (True, False)


def test_a_response_without_a_body_has_none() -> None:
    assert fed(b"HTTP/1.1 204 No Content\r\n\r\n").complete
    assert fed(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n").complete


@pytest.mark.parametrize(
    "fields", [b"", b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n"]
)
def test_the_response_to_connect_ends_with_its_head_whatever_it_says(fields: bytes) -> None:
    tunnel = IncomingResponse(head_only=True)
    tunnel.feed(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 Connected\r\n" + fields + b"\r\n")
    assert (tunnel.complete, tunnel.reason, tunnel.extra_data) == (True, "Connected", False)
    tunnel.feed(b"x")
    assert tunnel.extra_data
    tunnel = IncomingResponse(head_only=True)
    tunnel.feed(b"HTTP/1.1 200 Connected\r\n" + fields + b"\r\n\r\n")
    assert (tunnel.complete, tunnel.extra_data) == (True, True)


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * 2000,
        b"HTTP/" + b"x" * 300_000,
        b"HTTP/1.1 099 Too Low\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\nPRI",
        b"HTTP/1.1 200 OK\r\nName\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n",
        STREAM + b"1\r\naXX0\r\n\r\n",
        STREAM + b"1\r\naa\r\n0\r\n\r\n",
        STREAM + b"0x1\r\na\r\n",
        STREAM + b"+1\r\na\r\n",
        STREAM + b"1_0\r\na\r\n",
        STREAM + b"-1\r\na\r\n",
        STREAM + b"1" * 17 + b"\r\na\r\n",
    ],
)
def test_what_is_not_http_is_refused(data: bytes) -> None:
    with pytest.raises(HttpError):
        fed(data)
    with pytest.raises(HttpError):
        fed(*[data[at : at + 1] for at in range(len(data))])


@pytest.mark.parametrize("length", [b"+2", b"-2", b"1_0", b"0x2", b"2, 2", b"2 2", b"", b"\xb2"])
def test_a_length_that_is_no_number_is_refused(length: bytes) -> None:
    with pytest.raises(HttpError):
        fed(b"HTTP/1.1 200 OK\r\nContent-Length: " + length + b"\r\n\r\nhi")


def in_pieces(data: bytes, size: int = 1000) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


LINE = b"X-Long: " + b"x" * 990 + b"\r\n"
UNBOUNDED = {
    "one field": b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * MAX_HEAD_BYTES,
    "words beside the status": b"HTTP/1.1 200 " + b"x" * MAX_HEAD_BYTES,
    "long fields": b"HTTP/1.1 200 OK\r\n" + LINE * (MAX_HEAD_BYTES // 1000 + 2),
    "many fields": b"HTTP/1.1 200 OK\r\n"
    + b"".join(b"X-%d: 1\r\n" % number for number in range(MAX_HEADERS + 2)),
    "interim responses": INTERIM * (MAX_HEAD_BYTES // len(INTERIM) + 1),
    "the extension of a chunk": STREAM + b"1;" + b"x" * (MAX_FRAMING_BYTES + 1000),
    "fields after the last chunk": STREAM + b"0\r\n" + LINE * (MAX_FRAMING_BYTES // 1000 + 2),
}


@pytest.mark.parametrize("what", UNBOUNDED)
@pytest.mark.parametrize("size", [100, 1000, 60_000])
def test_what_has_no_end_is_refused_in_whatever_pieces_it_comes(what: str, size: int) -> None:
    with pytest.raises(HttpError):
        fed(*in_pieces(UNBOUNDED[what], size))


def test_a_whole_head_that_is_too_long_is_refused_as_well() -> None:
    head = UNBOUNDED["long fields"] + b"Content-Length: 0\r\n\r\n"
    with pytest.raises(HttpError, match="the head of the response is too long"):
        fed(head)


def test_long_trailers_are_read_in_whatever_pieces_they_come() -> None:
    data = STREAM + b"2\r\nhi\r\n0\r\n" + LINE * 20 + b"\r\n"
    response = fed(*in_pieces(data, 77))
    assert (response.complete, response.reusable, response.take()) == (True, True, b"hi")
    assert "x-long" not in response.headers


def test_the_body_held_in_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everynode.kube.http.http1.MAX_BODY_BYTES", 10_000)
    chunk = b"3e8\r\n" + b"x" * 1000 + b"\r\n"
    response = fed(STREAM)
    for _ in range(100):
        response.feed(chunk)
        assert len(response.take()) == 1000
    response.feed(chunk * 9)
    with pytest.raises(HttpError, match="the response is longer than"):
        response.feed(chunk * 2)


def test_a_body_in_tiny_chunks_takes_little_more_than_its_size() -> None:
    response, data = fed(STREAM), b"2\r\nab\r\n" * 5000
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(20):
            response.feed(data)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 2 * 20 * 10_000
    assert response.take() == b"ab" * 100_000


def test_a_response_is_freed_without_the_collector() -> None:
    gc.collect()
    gc.disable()
    try:
        fed(PLAIN)
        cut = fed(STREAM)
        cut.fail()
        del cut
        assert not [each for each in gc.get_objects() if isinstance(each, IncomingResponse)]
    finally:
        gc.enable()


class Valve(asyncio.Transport):
    """A transport that only knows whether it is read."""

    def __init__(self) -> None:
        super().__init__()
        self.open = asyncio.Event()
        self.open.set()

    def write(self, data: object) -> None:
        pass

    def is_closing(self) -> bool:
        return False

    def abort(self) -> None:
        protocol = self.get_protocol()
        asyncio.get_running_loop().call_soon(protocol.connection_lost, None)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self.protocol

    def pause_reading(self) -> None:
        self.open.clear()

    def resume_reading(self) -> None:
        self.open.set()


async def test_what_trickles_in_is_read_at_intervals_and_only_when_wanted() -> None:
    valve, connection, loop = Valve(), Connection(), asyncio.get_running_loop()
    connection.connection_made(valve)
    asking = asyncio.ensure_future(connection.send(b"GET"))
    await asyncio.sleep(0)
    connection.data_received(CHUNKED[:60])
    await asking
    connection.batch_reads()
    assert valve.open.is_set()
    connection.data_received(CHUNKED[60:62])
    next_response_read = (loop.time() // READ_INTERVAL + 1) * READ_INTERVAL
    closed = not valve.open.is_set()
    waiting = asyncio.ensure_future(connection.wait_for_data())
    await valve.open.wait()
    assert closed
    assert loop.time() >= next_response_read - 0.002
    connection.data_received(CHUNKED[62:])
    await waiting


async def test_a_response_that_is_not_urgent_is_read_with_the_others() -> None:
    loop, batcher, over = asyncio.get_running_loop(), ReadBatcher(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readline():
            writer.write(PLAIN)
        writer.close()
        await writer.wait_closed()
        over.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    transport, connection = await loop.create_connection(
        lambda: Connection(batcher), "127.0.0.1", port
    )
    moment = batcher.next_read(loop.time(), 1000)
    responses = [await connection.send(b"DELETE\n", urgent=False)]
    read_at = loop.time()
    responses.append(await connection.send(b"GET\n"))
    transport.close()
    await over.wait()
    server.close()
    assert [response.status for response in responses] == [201, 201]
    assert read_at >= moment - 0.002


async def test_a_lost_connection_fails_the_request_that_waits() -> None:
    connection = Connection()
    connection.connection_made(Valve())
    asking = asyncio.ensure_future(connection.send(b"GET"))
    await asyncio.sleep(0)
    connection.connection_lost(None)
    with pytest.raises(HttpError, match="closed before an answer came"):
        await asking
    with pytest.raises(HttpError):
        await connection.send(b"GET")


@pytest.mark.parametrize("reset", [False, True])
async def test_an_expired_or_reset_response_is_not_complete(*, reset: bool) -> None:
    valve, connection = Valve(), Connection()
    valve.set_protocol(connection)
    connection.connection_made(valve)
    asking = asyncio.ensure_future(connection.send(b"GET"))
    await asyncio.sleep(0)
    connection.data_received(b"HTTP/1.1 200 OK\r\n\r\nhalf")
    response = await asking
    more = asyncio.ensure_future(connection.wait_for_data())
    await asyncio.sleep(0)
    if reset:
        connection.connection_lost(ConnectionResetError("reset"))
    else:
        connection.expire()
    with pytest.raises(HttpError):
        await more
    assert not response.complete


async def test_bytes_that_were_not_asked_for_close_the_connection() -> None:
    valve, connection = Valve(), Connection()
    valve.set_protocol(connection)
    connection.connection_made(valve)
    asking = asyncio.ensure_future(connection.send(b"GET"))
    await asyncio.sleep(0)
    connection.data_received(PLAIN)
    assert (await asking).reusable
    connection.data_received(PLAIN)
    assert connection.closed
