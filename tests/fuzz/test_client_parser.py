"""Random answers, whole and damaged, in random pieces: our reading beside h11's.

Every run is a seed of its own, so that a failure can be played again; EVERYNODE_FUZZ_RUNS says how
many there are.
"""

from __future__ import annotations

import os
import random
from typing import Final, NamedTuple

import h11
import pytest

from everynode.kube.http.http1 import MAX_BODY_BYTES, HttpError, IncomingResponse

RUNS: Final = int(os.environ.get("EVERYNODE_FUZZ_RUNS", "400"))
_BATCH: Final = 200  # runs of one test
_BATCHES: Final = range(0, RUNS, _BATCH)
# What parsers often get wrong.
_WORDS: Final = (
    b"\r\n", b"\n", b"\r", b"\r\n\r\n", b" ", b"\t", b"\0", b":", b";", b",", b"0", b"-1", b"+2",
    b"0x2", b"1_0", b"ffffffffffffffff", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 200 OK\r\n",
    b"Content-Length: 3\r\n", b"Transfer-Encoding: chunked\r\n", b"Connection: close\r\n", b"\xff",
    b"0\r\n\r\n", b"1\r\nx\r\n", b"HTTP/1.0", b"HTTP/2.0", b" 204 ", b" 101 ", b" 304 ",
)  # fmt: skip


class Sent(NamedTuple):
    """A whole answer, and how it is to be read."""

    data: bytes
    status: int
    body: bytes
    reusable: bool


class Read(NamedTuple):
    """What a parser made of the bytes; nothing but `refused` where they are not HTTP."""

    refused: bool = True
    status: int = 0
    body: bytes = b""
    complete: bool = False


def draw_interim(rng: random.Random) -> bytes:
    heads = (b"100 Continue\r\n", b"103 Early Hints\r\nLink: </x>\r\n", b"102 \r\n")
    count = rng.choice((0, 0, 0, 1, 2, 20))
    return b"".join(b"HTTP/1.1 " + rng.choice(heads) + b"\r\n" for _ in range(count))


def draw_chunks(rng: random.Random, body: bytes) -> bytes:
    pieces, at = [], 0
    while at < len(body):
        size = min(rng.choice((1, 2, 10, 300, 5000)), len(body) - at)
        number = b"%x" % size if rng.random() < 0.7 else b"00%X" % size
        extension = rng.choice((b"", b"", b";a=b", b';a="b c"'))
        pieces.append(number + extension + b"\r\n" + body[at : at + size] + b"\r\n")
        at += size
    trailers = rng.choice((b"", b"", b"X-Sum: 1\r\n", b"X-Long: " + b"x" * 3000 + b"\r\n"))
    return b"".join(pieces) + b"0\r\n" + trailers + b"\r\n"


def draw_answer(rng: random.Random) -> Sent:
    status = rng.choice((200, 200, 201, 204, 304, 404, 409, 500))
    body = rng.randbytes(rng.choice((0, 1, 5, 100, 2000, 9000)))
    if rng.random() < 0.5:
        body = b'{"kind":"Pod"}\r\n' * (len(body) // 16)
    fields = [b"X-%d: %s" % (n, b"y" * rng.randrange(40)) for n in range(rng.randrange(6))]
    reusable = rng.random() < 0.8
    if not reusable:
        fields.append(
            rng.choice((b"Connection: close", b"connection:  Close", b"CONNECTION:CLOSE"))
        )
    framing = rng.choice(("length", "chunks", "close"))
    if status in (204, 304):
        body, tail = b"", b""
    elif framing == "length":
        fields.append(b"Content-Length: %d" % len(body))
        tail = body
    elif framing == "chunks":
        fields.append(rng.choice((b"Transfer-Encoding: chunked", b"transfer-encoding: Chunked")))
        tail = draw_chunks(rng, body)
    else:
        tail, reusable = body, False
    rng.shuffle(fields)
    reason = rng.choice((b" OK", b" ", b" Not quite: so"))
    head = b"\r\n".join([b"HTTP/1.1 %d%s" % (status, reason), *fields, b"", b""])
    return Sent(draw_interim(rng) + head + tail, status, body, reusable)


def damage(rng: random.Random, data: bytes) -> bytes:
    """Change a few places, most of them in the head and in the first chunks."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(min(len(changed), rng.choice((40, 200, 1 << 20))) + 1)
        kind = rng.randrange(5)
        if kind == 0:
            changed[at:at] = rng.choice(_WORDS)
        elif kind == 1:
            changed[at : at + rng.choice((1, 2, 10))] = b""
        elif kind == 2:
            changed[at : at + 1] = bytes([rng.randrange(256)])
        elif kind == 3:
            word = rng.choice(_WORDS)
            changed[at : at + len(word)] = word
        else:
            end = at + rng.randrange(60)
            changed[at:at] = changed[at:end]
    return bytes(changed)


def cut(rng: random.Random, data: bytes) -> list[bytes]:
    longest = rng.choice((1, 3, 50, 1000, 100_000))
    pieces, at = [], 0
    while at < len(data):
        size = rng.randint(1, longest)
        pieces.append(data[at : at + size])
        at += size
    return pieces


def read_ours(pieces: list[bytes]) -> tuple[Read, IncomingResponse]:
    """Read as a connection does: not beyond the end of the answer."""
    answer, body, size = IncomingResponse(), b"", 0
    try:
        for piece in pieces:
            answer.feed(piece)
            size += len(piece)
            taken = answer.take()
            body += taken
            assert len(body) <= size, "a body longer than what was sent"
            if answer.complete:
                break
        else:
            answer.end()
    except HttpError:
        return Read(), answer
    return Read(False, answer.status, body, answer.complete), answer


def read_theirs(data: bytes) -> Read:
    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_BODY_BYTES)
    connection.send(h11.Request(method="GET", target="/", headers=[("Host", "x")]))
    connection.send(h11.EndOfMessage())
    status, body = 0, b""
    try:
        connection.receive_data(data)
        closed = False
        while True:
            event = connection.next_event()
            if isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage):
                return Read(False, status, body, True)
            elif isinstance(event, h11.ConnectionClosed) or event is h11.PAUSED:
                return Read()
            elif event is h11.NEED_DATA:
                if closed:
                    return Read()
                closed = True
                connection.receive_data(b"")
    except h11.RemoteProtocolError:
        return Read()


def seeds(batch: int) -> range:
    return range(batch, min(batch + _BATCH, RUNS))


@pytest.mark.parametrize("batch", _BATCHES)
def test_a_whole_answer_is_read_as_it_was_sent_and_as_h11_reads_it(batch: int) -> None:
    for seed in seeds(batch):
        rng = random.Random(f"whole {seed}")
        sent = draw_answer(rng)
        found, answer = read_ours(cut(rng, sent.data))
        assert found == Read(False, sent.status, sent.body, True), seed
        assert answer.reusable == sent.reusable, seed
        assert read_theirs(sent.data) == found, seed


@pytest.mark.parametrize("batch", _BATCHES)
def test_a_damaged_answer_is_the_same_however_it_is_cut_and_never_another_than_h11s(
    batch: int,
) -> None:
    accepted = 0
    for seed in seeds(batch):
        rng = random.Random(f"damaged {seed}")
        data = damage(rng, draw_answer(rng).data)
        found, _ = read_ours([data])
        for _ in range(2):
            assert read_ours(cut(rng, data))[0] == found, seed
        theirs = read_theirs(data)
        if found.complete and theirs.complete:
            accepted += 1
            assert found == theirs, seed
    assert accepted >= len(seeds(batch)) // 20  # else nothing has been compared


@pytest.mark.parametrize("batch", _BATCHES)
def test_bytes_after_an_answer_keep_its_connection_from_being_used_again(batch: int) -> None:
    for seed in seeds(batch):
        rng = random.Random(f"excess {seed}")
        sent = draw_answer(rng)
        excess = rng.choice((b"x", sent.data, b"HTTP/1.1", rng.randbytes(20) + b"x"))
        found, answer = read_ours([sent.data + excess])
        assert found.complete or not sent.reusable, seed
        assert not answer.reusable, seed
