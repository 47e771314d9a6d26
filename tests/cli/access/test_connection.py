from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from everynode.cli.access.connection import as_user_error, connect
from everynode.clock import SystemClock
from everynode.errors import UserError
from everynode.kube.auth.credentials import ConfigError
from everynode.kube.errors import (
    Conflict,
    Forbidden,
    KubeError,
    NotServed,
    RequestInfo,
    Unauthorized,
    UnknownOutcome,
    from_transport,
)
from everynode.kube.requests import Request
from everynode.kube.transport import TransportError
from tests.support.commands import kubeconfig

ASKED = RequestInfo(
    verb="patch", resource="clusterroles.rbac.authorization.k8s.io", name="everynode"
)


@asynccontextmanager
async def server(version: str, *, status: int = 200) -> AsyncIterator[str]:
    """Something that says what is given about its version, and knows nothing else."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(text=version, status=status, content_type="application/json")

    app = web.Application()
    app.router.add_get("/version", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def test_a_server_that_answers_gives_a_client(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with server('{"major": "1", "minor": "36+"}') as url:
        file = kubeconfig(tmp_path, url)
        async with connect(SystemClock(), kubeconfig=file) as client:
            assert b"36+" in await client.read(Request("GET", "/version"), bytes)
    assert capsys.readouterr().err == ""


async def test_an_old_server_is_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with (
        server('{"major": "1", "minor": "29"}') as url,
        connect(SystemClock(), kubeconfig=kubeconfig(tmp_path, url)),
    ):
        pass
    assert "this is Kubernetes 1.29; 1.30 is the oldest" in capsys.readouterr().err


async def test_something_that_is_no_api_server_is_named_so(tmp_path: Path) -> None:
    async with server("<html>Welcome</html>") as url:
        with pytest.raises(UserError, match="not a Kubernetes API server"):
            async with connect(SystemClock(), kubeconfig=kubeconfig(tmp_path, url)):
                pass


async def test_something_that_has_no_version_is_no_api_server(tmp_path: Path) -> None:
    async with server("", status=404) as url:
        with pytest.raises(UserError, match="not a Kubernetes API server"):
            async with connect(SystemClock(), kubeconfig=kubeconfig(tmp_path, url)):
                pass


async def test_refused_credentials_say_log_in_again(tmp_path: Path) -> None:
    async with server("{}", status=401) as url:
        with pytest.raises(UserError, match="expired; log in again"):
            async with connect(SystemClock(), kubeconfig=kubeconfig(tmp_path, url)):
                pass


async def test_an_unreachable_server_says_what_to_check(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"cannot reach the API server: 127\.0\.0\.1:1: .*--context"
    ):
        async with connect(SystemClock(), kubeconfig=kubeconfig(tmp_path, "http://127.0.0.1:1")):
            pass


def test_what_is_wrong_with_a_kubeconfig_is_not_blamed_on_the_server() -> None:
    plugin = "the credential plugin p of user u is not there; install it"
    lost = TransportError(plugin, sent=False)
    lost.__cause__ = ConfigError(plugin)
    error = from_transport(Request("GET", "/version"), lost)
    error.__cause__ = lost
    assert str(as_user_error(error)) == plugin


async def test_what_is_refused_later_becomes_one_line_too(tmp_path: Path) -> None:
    async with server('{"major": "1", "minor": "36"}') as url:
        file = kubeconfig(tmp_path, url)
        with pytest.raises(UserError, match=r"does not serve nodes"):
            async with connect(SystemClock(), kubeconfig=file) as client:
                await client.read(Request("GET", "/api/v1/nodes"), bytes)


async def test_a_wrong_context_names_those_there_are(tmp_path: Path) -> None:
    file = kubeconfig(tmp_path, "http://127.0.0.1:1")
    with pytest.raises(UserError, match="asks for context 'there'; there are: here"):
        async with connect(SystemClock(), kubeconfig=file, context="there"):
            pass


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (Forbidden("no", request_info=ASKED), f"you lack the permission to {ASKED}; ask a cluster"),
        (Unauthorized("no"), "the server does not accept these credentials"),
        (
            UnknownOutcome("late", request_info=ASKED),
            f"no answer to {ASKED}: late; it may have happened",
        ),
        (
            NotServed("page not found", request_info=ASKED),
            f"the server does not serve {ASKED.resource}",
        ),
        (Conflict("one\n- two\n", request_info=ASKED), f"cannot {ASKED}: one - two"),
        (KubeError("plain"), "plain"),
    ],
)
def test_every_refusal_is_one_line(error: KubeError, line: str) -> None:
    text = str(as_user_error(error))
    assert text.startswith(line)
    assert "\n" not in text
