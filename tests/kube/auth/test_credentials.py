"""Identities that are renewed: files that rotate, plugins that expire."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from everynode.api.times import format_time
from everynode.clock import SystemClock
from everynode.kube.auth.credentials import (
    ConfigError,
    CredentialFiles,
    FileCredentials,
    Identity,
    KeyPair,
    PluginCommand,
    PluginCredentials,
)
from tests.support.scripted_server import ManualClock

API = "client.authentication.k8s.io/v1"


def printing(folder: Path, *answers: Any) -> PluginCommand:
    """A plugin that gives these answers in turn, the last one again and again."""
    for number, answer in enumerate(answers, 1):
        text = answer if isinstance(answer, str) else json.dumps(answer)
        (folder / f"answer{number}").write_text(text)
    script = folder / "plugin"
    script.write_text(
        f"#!/bin/sh\ncd {folder}\n"
        "n=$(($(cat count 2>/dev/null || echo 0) + 1)); echo $n > count\n"
        f"[ $n -gt {len(answers)} ] && n={len(answers)}\ncat answer$n\n"
    )
    script.chmod(0o755)
    return PluginCommand(str(script), API, user="u", interactive="Never")


def runs(folder: Path) -> int:
    return int((folder / "count").read_text())


def granted(**status: str) -> dict[str, Any]:
    return {"apiVersion": API, "kind": "ExecCredential", "status": status}


async def token(credentials: PluginCredentials | FileCredentials) -> str:
    return dict((await credentials.identity()).headers)["Authorization"].removeprefix("Bearer ")


async def test_plugin_is_asked_once_while_its_answer_holds(tmp_path: Path) -> None:
    plugin = PluginCredentials(
        printing(tmp_path, granted(token="a"), granted(token="b")), ManualClock()
    )
    assert await asyncio.gather(*(token(plugin) for _ in range(5))) == ["a"] * 5
    assert runs(tmp_path) == 1
    plugin.reject()
    assert await token(plugin) == "b"


async def test_plugin_is_asked_again_shortly_before_its_answer_expires(tmp_path: Path) -> None:
    clock = ManualClock()
    first = granted(token="a", expirationTimestamp=format_time(clock.now() + 600))
    plugin = PluginCredentials(printing(tmp_path, first, granted(token="b")), clock)
    assert await token(plugin) == "a"
    await clock.advance(560)
    assert await token(plugin) == "a"
    await clock.advance(15)
    assert await token(plugin) == "b"


async def test_plugin_may_give_a_certificate(tmp_path: Path) -> None:
    answer = granted(clientCertificateData="CERT", clientKeyData="KEY")
    plugin = PluginCredentials(printing(tmp_path, answer), ManualClock())
    identity = await plugin.identity()
    assert identity.key_pair == KeyPair(b"CERT", b"KEY")
    assert identity.headers == ()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("", "did not print an ExecCredential"),
        ("Please log in", "did not print an ExecCredential"),
        ({}, "printed a nothing, not a client.authentication.k8s.io/v1 ExecCredential"),
        (granted(token="a") | {"apiVersion": "v1"}, "printed a v1 ExecCredential"),
        (granted(), "printed neither a token nor a certificate"),
        (granted(clientCertificateData="x"), "a certificate without its key"),
        (granted(token="a", expirationTimestamp="soon"), "expires at .*soon"),
        (granted(token="a\r\nEvil: 1"), "printed a token with characters that cannot be sent"),
        (
            {**granted(), "status": {"token": 7}},
            "did not print an ExecCredential: Expected `str | null`, got `int`",
        ),
    ],
)
async def test_what_plugins_print_is_checked(tmp_path: Path, answer: Any, words: str) -> None:
    plugin = PluginCredentials(printing(tmp_path, answer), ManualClock())
    with pytest.raises(ConfigError, match=words) as caught:
        await plugin.identity()
    assert f"the credential plugin {tmp_path}/plugin of user u" in str(caught.value)


async def test_plugin_that_fails_is_quoted(tmp_path: Path) -> None:
    script = tmp_path / "plugin"
    script.write_text("#!/bin/sh\necho first >&2\necho 'the session has expired' >&2\nexit 3\n")
    script.chmod(0o755)
    command = PluginCommand(str(script), API, user="u", interactive="Never")
    with pytest.raises(ConfigError, match="of user u failed: the session has expired"):
        await PluginCredentials(command, ManualClock()).identity()
    script.write_text("#!/bin/sh\nexit 3\n")
    with pytest.raises(ConfigError, match="failed: exit code 3"):
        await PluginCredentials(command, ManualClock()).identity()


async def test_plugin_that_is_not_installed_comes_with_its_hint() -> None:
    command = PluginCommand("no-such-plugin", API, user="u", install_hint="Get it\n from x.\n")
    with pytest.raises(
        ConfigError, match=r"no-such-plugin of user u is not there; Get it from x\."
    ):
        await PluginCredentials(command, ManualClock()).identity()
    with pytest.raises(ConfigError, match="install it or put it on the PATH"):
        await PluginCredentials(PluginCommand("no-such-plugin", API), ManualClock()).identity()


async def test_plugin_that_is_no_program_is_named(tmp_path: Path) -> None:
    script = tmp_path / "plugin"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    with pytest.raises(ConfigError, match="cannot be started: No such file"):
        await PluginCredentials(PluginCommand(str(script), API), ManualClock()).identity()


async def test_plugin_that_needs_a_person_is_not_run_without_one(tmp_path: Path) -> None:
    command = printing(tmp_path, granted(token="a"))
    command = PluginCommand(command.command, API, user="u", interactive="Always")
    with pytest.raises(ConfigError, match="needs a terminal and there is none"):
        await PluginCredentials(command, ManualClock()).identity()


async def test_files_are_read_again_after_a_minute(tmp_path: Path) -> None:
    clock, file = ManualClock(), tmp_path / "token"
    file.write_text("a\n")
    credentials = FileCredentials(CredentialFiles(token=str(file)), clock)
    assert await token(credentials) == "a"
    file.write_text("b\n")
    assert await token(credentials) == "a"
    await clock.advance(61)
    assert await token(credentials) == "b"


async def test_a_file_missing_for_a_moment_does_no_harm(tmp_path: Path) -> None:
    clock, file = ManualClock(), tmp_path / "token"
    file.write_text("a")
    credentials = FileCredentials(CredentialFiles(token=str(file)), clock)
    assert await token(credentials) == "a"
    file.unlink()
    await clock.advance(61)
    assert await token(credentials) == "a"


async def test_empty_and_missing_files_are_named(tmp_path: Path) -> None:
    file = tmp_path / "token"
    with pytest.raises(ConfigError, match=r"cannot read the token .*: No such file"):
        await FileCredentials(CredentialFiles(token=str(file)), ManualClock()).identity()
    file.touch()
    with pytest.raises(ConfigError, match=r"the token file .* is empty"):
        await FileCredentials(CredentialFiles(token=str(file)), ManualClock()).identity()


async def test_token_of_a_file_goes_with_everything_else(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("a")
    base = Identity((("Impersonate-User", "ada"),), KeyPair(b"C", b"K"))
    identity = await FileCredentials(
        CredentialFiles(token=str(file)), ManualClock(), base=base
    ).identity()
    assert identity.headers == (("Authorization", "Bearer a"), ("Impersonate-User", "ada"))
    assert identity.key_pair == KeyPair(b"C", b"K")


def a_plugin(folder: Path, script: str) -> PluginCommand:
    file = folder / "plugin"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return PluginCommand(str(file), API, user="u", interactive="Never")


def printed(**status: str) -> str:
    return f"echo '{json.dumps(granted(**status))}'"


@pytest.mark.parametrize(
    "output",
    [
        b'{"kind":"\xff"}',
        b'{"status":{"token":"\xff"}}',
        b'{"kind":"\\ud800"}',
        b'{"status":' * 50_000,
        b"[" * 200_000,
        b"\0",
    ],
    ids=["utf-8", "utf-8 in a field", "surrogate", "deep objects", "deep lists", "zero"],
)
async def test_what_no_decoder_takes_is_one_line(tmp_path: Path, output: bytes) -> None:
    (tmp_path / "output").write_bytes(output)
    command = a_plugin(tmp_path, f"cat {tmp_path}/output")
    with pytest.raises(ConfigError, match="did not print an ExecCredential") as caught:
        await PluginCredentials(command, SystemClock()).identity()
    assert "\n" not in str(caught.value)


async def test_a_plugin_that_prints_without_end_is_ended(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="printed more than 1048576 bytes"):
        await PluginCredentials(a_plugin(tmp_path, "exec cat /dev/zero"), SystemClock()).identity()
    with pytest.raises(ConfigError, match="printed more than 1048576 bytes"):
        await PluginCredentials(
            a_plugin(tmp_path, "exec cat /dev/zero >&2"), SystemClock()
        ).identity()


async def test_a_plugin_that_gives_no_answer_is_ended_with_all_that_it_started(
    tmp_path: Path,
) -> None:
    clock, pipe = ManualClock(), tmp_path / "pipe"
    os.mkfifo(pipe)
    # The child of the plugin holds the pipe open for as long as it lives.
    script = f"(echo started; exec sleep 600) >{pipe} &\nwait"
    asked = asyncio.ensure_future(PluginCredentials(a_plugin(tmp_path, script), clock).identity())
    file = await asyncio.to_thread(pipe.open, "rb")
    assert await asyncio.to_thread(file.readline) == b"started\n"
    await clock.advance(61)
    with pytest.raises(ConfigError, match="gave no answer in 60 seconds"):
        await asked
    assert await asyncio.to_thread(file.read) == b""  # the child is gone too
    file.close()


async def test_a_pipe_that_a_plugin_s_child_keeps_open_does_not_hold_us_up(tmp_path: Path) -> None:
    script = f"sleep 600 &\necho $! >{tmp_path}/child\n{printed(token='a')}"
    try:
        assert await token(PluginCredentials(a_plugin(tmp_path, script), SystemClock())) == "a"
        os.kill(int((tmp_path / "child").read_text()), 0)  # what a plugin leaves behind may stay
    finally:
        os.kill(int((tmp_path / "child").read_text()), signal.SIGKILL)


async def test_nulls_of_a_plugin_are_as_good_as_nothing(tmp_path: Path) -> None:
    answer = granted(token="a") | {"status": {"token": "a", "expirationTimestamp": None}}
    assert await token(PluginCredentials(printing(tmp_path, answer), ManualClock())) == "a"


async def test_an_argument_that_no_program_takes_is_refused(tmp_path: Path) -> None:
    command = replace(a_plugin(tmp_path, "true"), args=("a\0b",))
    with pytest.raises(ConfigError, match="cannot be started: embedded null byte"):
        await PluginCredentials(command, ManualClock()).identity()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a\nb", "holds characters that no token has"),
        (b"\xff\xfe", "holds characters that no token has"),
        (b"x" * 4_000_000, "longer than 3145728 bytes"),
    ],
)
async def test_a_token_file_that_holds_no_token_is_named(
    tmp_path: Path, content: bytes, words: str
) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)
    with pytest.raises(ConfigError, match=words) as caught:
        await FileCredentials(CredentialFiles(token=str(file)), ManualClock()).identity()
    assert str(file) in str(caught.value)


async def test_paths_that_are_no_files_are_named_and_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(ConfigError, match=f"the token file {pipe} is empty"):
        await FileCredentials(CredentialFiles(token=str(pipe)), ManualClock()).identity()
    with pytest.raises(ConfigError, match=f"cannot read the token {tmp_path}: Is a directory"):
        await FileCredentials(CredentialFiles(token=str(tmp_path)), ManualClock()).identity()
    with pytest.raises(ConfigError, match=r"cannot read the token .*embedded null byte"):
        await FileCredentials(CredentialFiles(token="a\0b"), ManualClock()).identity()


async def test_a_certificate_that_is_no_pem_is_named_with_its_file(tmp_path: Path) -> None:
    file = tmp_path / "tls.crt"
    file.write_bytes(b"\x30\x82")
    files = CredentialFiles(certificate=str(file), key=str(file))
    with pytest.raises(ConfigError, match=f"the client certificate {file} is not PEM"):
        await FileCredentials(files, ManualClock()).identity()
