"""Identities that are renewed: files that rotate, plugins that expire."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from everynode.api.times import format_time
from everynode.kube.credentials import (
    ConfigError,
    Files,
    FromFiles,
    Identity,
    KeyPair,
    Plugin,
    PluginCommand,
)
from tests.kube.scripted import ManualClock

API = "client.authentication.k8s.io/v1"


def printing(folder: Path, *answers: Any) -> PluginCommand:
    """A plugin that gives these answers in turn, the last one for ever."""
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


async def token(credentials: Plugin | FromFiles) -> str:
    return dict((await credentials.identity()).headers)["Authorization"].removeprefix("Bearer ")


async def test_plugin_is_asked_once_while_its_answer_holds(tmp_path: Path) -> None:
    plugin = Plugin(printing(tmp_path, granted(token="a"), granted(token="b")), ManualClock())
    assert await asyncio.gather(*(token(plugin) for _ in range(5))) == ["a"] * 5
    assert runs(tmp_path) == 1
    plugin.reject()
    assert await token(plugin) == "b"


async def test_plugin_is_asked_again_shortly_before_its_answer_expires(tmp_path: Path) -> None:
    clock = ManualClock()
    first = granted(token="a", expirationTimestamp=format_time(clock.now() + 600))
    plugin = Plugin(printing(tmp_path, first, granted(token="b")), clock)
    assert await token(plugin) == "a"
    await clock.advance(560)
    assert await token(plugin) == "a"
    await clock.advance(15)
    assert await token(plugin) == "b"


async def test_plugin_may_give_a_certificate(tmp_path: Path) -> None:
    answer = granted(clientCertificateData="CERT", clientKeyData="KEY")
    plugin = Plugin(printing(tmp_path, answer), ManualClock())
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
    ],
)
async def test_what_plugins_print_is_checked(tmp_path: Path, answer: Any, words: str) -> None:
    plugin = Plugin(printing(tmp_path, answer), ManualClock())
    with pytest.raises(ConfigError, match=words) as caught:
        await plugin.identity()
    assert f"the credential plugin {tmp_path}/plugin of user u" in str(caught.value)


async def test_plugin_that_fails_is_quoted(tmp_path: Path) -> None:
    script = tmp_path / "plugin"
    script.write_text("#!/bin/sh\necho first >&2\necho 'the session has expired' >&2\nexit 3\n")
    script.chmod(0o755)
    command = PluginCommand(str(script), API, user="u", interactive="Never")
    with pytest.raises(ConfigError, match="of user u failed: the session has expired"):
        await Plugin(command, ManualClock()).identity()
    script.write_text("#!/bin/sh\nexit 3\n")
    with pytest.raises(ConfigError, match="failed: exit code 3"):
        await Plugin(command, ManualClock()).identity()


async def test_plugin_that_is_not_installed_comes_with_its_hint() -> None:
    command = PluginCommand("no-such-plugin", API, user="u", install_hint="Get it\n from x.\n")
    with pytest.raises(
        ConfigError, match=r"no-such-plugin of user u is not there; Get it from x\."
    ):
        await Plugin(command, ManualClock()).identity()
    with pytest.raises(ConfigError, match="install it or put it on the PATH"):
        await Plugin(PluginCommand("no-such-plugin", API), ManualClock()).identity()


async def test_plugin_that_is_no_program_is_named(tmp_path: Path) -> None:
    script = tmp_path / "plugin"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    with pytest.raises(ConfigError, match="cannot be started: No such file"):
        await Plugin(PluginCommand(str(script), API), ManualClock()).identity()


async def test_plugin_that_needs_a_person_is_not_run_without_one(tmp_path: Path) -> None:
    command = printing(tmp_path, granted(token="a"))
    command = PluginCommand(command.command, API, user="u", interactive="Always")
    with pytest.raises(ConfigError, match="needs a terminal and there is none"):
        await Plugin(command, ManualClock()).identity()


async def test_files_are_read_again_after_a_minute(tmp_path: Path) -> None:
    clock, file = ManualClock(), tmp_path / "token"
    file.write_text("a\n")
    credentials = FromFiles(Files(token=str(file)), clock)
    assert await token(credentials) == "a"
    file.write_text("b\n")
    assert await token(credentials) == "a"
    await clock.advance(61)
    assert await token(credentials) == "b"


async def test_a_file_missing_for_a_moment_does_no_harm(tmp_path: Path) -> None:
    clock, file = ManualClock(), tmp_path / "token"
    file.write_text("a")
    credentials = FromFiles(Files(token=str(file)), clock)
    assert await token(credentials) == "a"
    file.unlink()
    await clock.advance(61)
    assert await token(credentials) == "a"


async def test_empty_and_missing_files_are_named(tmp_path: Path) -> None:
    file = tmp_path / "token"
    with pytest.raises(ConfigError, match=r"cannot read the token .*: No such file"):
        await FromFiles(Files(token=str(file)), ManualClock()).identity()
    file.touch()
    with pytest.raises(ConfigError, match=r"the token file .* is empty"):
        await FromFiles(Files(token=str(file)), ManualClock()).identity()


async def test_token_of_a_file_goes_with_everything_else(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("a")
    rest = Identity((("Impersonate-User", "ada"),), KeyPair(b"C", b"K"))
    identity = await FromFiles(Files(token=str(file)), ManualClock(), rest=rest).identity()
    assert identity.headers == (("Authorization", "Bearer a"), ("Impersonate-User", "ada"))
    assert identity.key_pair == KeyPair(b"C", b"K")
