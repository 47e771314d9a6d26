"""Answers of HTTP/1.1, in whatever pieces they come."""

from __future__ import annotations

import asyncio
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everynode.kube.wire import GATHER, Answer, Connection, Rhythm, WireError

PLAIN = b"HTTP/1.1 201 Created\r\nContent-Length: 5\r\nX-Note: a: b\r\n\r\nhello"
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3\r\nhel\r\n2;of=5\r\nlo\r\n0\r\nX-Trailer: 1\r\n\r\n"
)
PATIENT = b"HTTP/1.1 100 Continue\r\n\r\n" + PLAIN


def fed(*pieces: bytes) -> Answer:
    answer = Answer()
    for piece in pieces:
        answer.feed(piece)
    return answer


@given(st.sampled_from([PLAIN, CHUNKED, PATIENT]), st.lists(st.integers(0, 120), max_size=8))
def test_an_answer_is_the_same_however_it_is_cut(data: bytes, cuts: list[int]) -> None:
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    answer = fed(*[data[a:b] for a, b in itertools.pairwise(edges)])
    assert (answer.complete, answer.reusable, answer.take()) == (True, True, b"hello")


def test_the_head_is_told_before_the_body_is_there() -> None:
    answer = fed(PLAIN[:-2])
    assert (answer.status, answer.reason, answer.complete) == (201, "Created", False)
    assert answer.headers == {"content-length": "5", "x-note": "a: b"}
    assert answer.take() == b"hel"
    answer.feed(PLAIN[-2:])
    assert (answer.take(), answer.complete) == (b"lo", True)


def test_an_answer_of_unknown_length_ends_with_its_connection() -> None:
    answer = fed(b"HTTP/1.1 200 OK\r\n\r\nhel", b"lo")
    assert not answer.complete
    answer.end()
    assert (answer.complete, answer.reusable, answer.take()) == (True, False, b"hello")


@pytest.mark.parametrize("data", [PLAIN[:-1], CHUNKED[:-1], PLAIN[:10]])
def test_an_answer_that_breaks_off_is_never_complete(data: bytes) -> None:
    answer = fed(data)
    answer.end()
    assert not answer.complete


@pytest.mark.parametrize(
    "data",
    [
        PLAIN + b"more",
        CHUNKED + b"more",
        PLAIN.replace(b"X-Note: a: b", b"Connection: close"),
        PLAIN.replace(b"HTTP/1.1", b"HTTP/1.0"),
    ],
)
def test_a_connection_that_is_to_be_closed_or_says_too_much_is_not_used_again(data: bytes) -> None:
    answer = fed(data)
    assert (answer.complete, answer.reusable) == (True, False)


def test_an_answer_without_a_body_has_none() -> None:
    assert fed(b"HTTP/1.1 204 No Content\r\n\r\n").complete
    tunnel = Answer(bodiless=True)
    tunnel.feed(b"HTTP/1.1 200 Connected\r\n\r\n")
    assert tunnel.complete


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
    ],
)
def test_what_is_not_http_is_refused(data: bytes) -> None:
    with pytest.raises(WireError):
        fed(data)


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

    def pause_reading(self) -> None:
        self.open.clear()

    def resume_reading(self) -> None:
        self.open.set()


async def test_what_trickles_in_is_read_at_intervals_and_only_when_wanted() -> None:
    valve, connection, loop = Valve(), Connection(), asyncio.get_running_loop()
    connection.connection_made(valve)
    asking = asyncio.ensure_future(connection.ask(b"GET"))
    await asyncio.sleep(0)
    connection.data_received(CHUNKED[:60])
    await asking
    connection.gather()
    assert valve.open.is_set()
    connection.data_received(CHUNKED[60:62])
    following = (loop.time() // GATHER + 1) * GATHER
    closed = not valve.open.is_set()
    waiting = asyncio.ensure_future(connection.more())
    await valve.open.wait()
    assert closed
    assert loop.time() >= following - 0.002
    connection.data_received(CHUNKED[62:])
    await waiting


def test_all_connections_are_read_at_the_same_moments() -> None:
    rhythm = Rhythm()
    assert rhythm.following(100.0) is None
    moment = rhythm.beat(100.01, 1000)
    assert 0 < moment - 100.01 <= GATHER
    assert rhythm.beat(100.03, 1000) == rhythm.following(100.02) == moment


def test_where_much_comes_it_is_read_less_often() -> None:
    moments = [100.01]
    rhythm = Rhythm()
    for _ in range(5):
        moments.append(rhythm.beat(moments[-1] + 0.001, 100_000))
    assert moments[-1] - moments[-2] == pytest.approx(2 * GATHER)


def test_an_answer_after_a_silence_does_not_wait() -> None:
    rhythm = Rhythm()
    rhythm.beat(100.0, 1000)
    assert rhythm.following(100.0 + 3 * GATHER) is None


async def test_an_answer_that_is_not_urgent_is_read_with_the_others() -> None:
    loop, rhythm, over = asyncio.get_running_loop(), Rhythm(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readline():
            writer.write(PLAIN)
        writer.close()
        await writer.wait_closed()
        over.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    transport, connection = await loop.create_connection(
        lambda: Connection(rhythm), "127.0.0.1", port
    )
    moment = rhythm.beat(loop.time(), 1000)
    answers = [await connection.ask(b"DELETE\n", urgent=False)]
    read_at = loop.time()
    answers.append(await connection.ask(b"GET\n"))
    transport.close()
    await over.wait()
    server.close()
    assert [answer.status for answer in answers] == [201, 201]
    assert read_at >= moment - 0.002


async def test_a_connection_that_is_lost_tells_whoever_waits() -> None:
    connection = Connection()
    connection.connection_made(Valve())
    asking = asyncio.ensure_future(connection.ask(b"GET"))
    await asyncio.sleep(0)
    connection.connection_lost(None)
    with pytest.raises(WireError, match="closed before an answer came"):
        await asking
    with pytest.raises(WireError):
        await connection.ask(b"GET")
