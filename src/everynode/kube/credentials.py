"""Who we are to an API server: tokens, certificates and plugins, renewed in time."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from everynode.api.times import TimeError, parse_time
from everynode.clock import Clock

_REREAD_AFTER: Final = 60.0  # seconds; the kubelet renews tokens long before they expire
_EARLY: Final = 30.0  # a plugin's token is renewed this long before it expires
_PLUGIN_LIMIT: Final = 60.0
_PLUGIN_APIS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


class ConfigError(Exception):
    """Something about the way to the cluster is wrong; one line that says what to do."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A client certificate and its key, both PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Identity:
    """What every request carries to say who sends it."""

    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    key_pair: KeyPair | None = None


class Credentials(Protocol):
    """Whoever knows who we are."""

    async def identity(self) -> Identity:
        """Return the present identity; raises ConfigError."""
        ...

    def reject(self) -> None:
        """The server did not accept the last identity: find a new one next time."""
        ...


class Fixed:
    """An identity that never changes."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity

    async def identity(self) -> Identity:
        """Return it."""
        return self._identity

    def reject(self) -> None:
        """There is no other."""


@dataclass(frozen=True, slots=True)
class Files:
    """Where token and certificate are; empty where there is none."""

    token: str = ""
    certificate: str = ""
    key: str = ""


class FromFiles:
    """An identity kept in files that somebody renews: service accounts, rotated certificates."""

    def __init__(self, files: Files, clock: Clock, *, rest: Identity | None = None) -> None:
        self._files = files
        self._clock = clock
        self._rest = rest or Identity()
        self._known: Identity | None = None
        self._read_at = 0.0

    async def identity(self) -> Identity:
        """Return what the files say, read at most a minute ago."""
        now = self._clock.monotonic()
        if self._known is None or now - self._read_at >= _REREAD_AFTER:
            try:
                self._known = self._read()
            except ConfigError:
                # A file is missing for a moment while it is renewed; what we know is still good.
                if self._known is None:
                    raise
            self._read_at = now
        return self._known

    def reject(self) -> None:
        """Read the files again next time."""
        self._known = None

    def _read(self) -> Identity:
        identity = self._rest
        if self._files.token:
            token = read_file(self._files.token, "token").decode("ascii", "replace").strip()
            if not token:
                raise ConfigError(f"the token file {self._files.token} is empty")
            identity = replace(identity, headers=(bearer(token), *identity.headers))
        if self._files.certificate:
            pair = KeyPair(
                read_file(self._files.certificate, "client certificate"),
                read_file(self._files.key, "client key"),
            )
            identity = replace(identity, key_pair=pair)
        return identity


@dataclass(frozen=True, slots=True)
class PluginCommand:
    """An exec plugin as a kubeconfig describes it."""

    command: str
    api_version: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    install_hint: str = ""
    interactive: str = "IfAvailable"  # or Never, Always
    folder: str = ""  # of the kubeconfig: relative commands start there
    user: str = ""
    cluster: Mapping[str, Any] | None = None  # told to the plugin if it asked for it


class _Granted(msgspec.Struct, rename="camel"):
    token: str = ""
    expiration_timestamp: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""


class _Credential(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _Granted | None = None


class Plugin:
    """An identity that a program gives us, kept until it expires."""

    def __init__(
        self, command: PluginCommand, clock: Clock, *, rest: Identity | None = None
    ) -> None:
        self._command = command
        self._clock = clock
        self._rest = rest or Identity()
        self._known: Identity | None = None
        self._expires = float("inf")
        self._lock = asyncio.Lock()

    async def identity(self) -> Identity:
        """Return the plugin's answer, asking again shortly before it expires."""
        async with self._lock:
            if self._known is None or self._clock.now() >= self._expires - _EARLY:
                granted = parse_credential(await self._run(), self._command)
                self._known, self._expires = self._identity_of(granted)
            return self._known

    def reject(self) -> None:
        """Ask the plugin again next time."""
        self._known = None

    def _identity_of(self, granted: _Granted) -> tuple[Identity, float]:
        identity = self._rest
        if granted.token:
            identity = replace(identity, headers=(bearer(granted.token), *identity.headers))
        if granted.client_certificate_data:
            certificate = granted.client_certificate_data.encode()
            pair = KeyPair(certificate, granted.client_key_data.encode())
            identity = replace(identity, key_pair=pair)
        expires = granted.expiration_timestamp
        try:
            return identity, parse_time(expires) if expires else float("inf")
        except TimeError as error:
            raise self._error(f"says that its credential expires at {error}") from None

    async def _run(self) -> bytes:
        command = self._command
        program = self._program()
        interactive = command.interactive != "Never" and sys.stdin is not None
        interactive = interactive and sys.stdin.isatty()
        if command.interactive == "Always" and not interactive:
            raise self._error("needs a terminal and there is none; log in by hand first")
        try:
            process = await asyncio.create_subprocess_exec(
                program,
                *command.args,
                env=self._environment(interactive=interactive),
                stdin=None if interactive else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                # A plugin that can ask a person must be able to say what it wants.
                stderr=None if interactive else asyncio.subprocess.PIPE,
            )
        except OSError as error:
            raise self._error(f"cannot be started: {error.strerror}") from error
        return await self._output(process)

    async def _output(self, process: asyncio.subprocess.Process) -> bytes:
        try:
            async with asyncio.timeout(_PLUGIN_LIMIT):
                out, err = await process.communicate()
        except TimeoutError:
            raise self._error(f"gave no answer in {_PLUGIN_LIMIT:.0f} seconds") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode != 0:
            said = (err or b"").decode("utf-8", "replace").strip().splitlines()
            raise self._error(f"failed: {said[-1] if said else f'exit code {process.returncode}'}")
        return out

    def _program(self) -> str:
        command = self._command.command
        if os.sep in command and not os.path.isabs(command):
            command = str(Path(self._command.folder, command))
        path = self._command.env.get("PATH", os.environ.get("PATH"))
        found = shutil.which(command, path=path)
        if found is None:
            hint = self._command.install_hint.strip() or "install it or put it on the PATH"
            raise self._error(f"is not there; {' '.join(hint.split())}")
        return found

    def _environment(self, *, interactive: bool) -> dict[str, str]:
        spec: dict[str, Any] = {"interactive": interactive}
        if self._command.cluster is not None:
            spec["cluster"] = self._command.cluster
        info = {"apiVersion": self._command.api_version, "kind": "ExecCredential", "spec": spec}
        told = {"KUBERNETES_EXEC_INFO": json.dumps(info)}
        return {**os.environ, **self._command.env, **told}

    def _error(self, message: str) -> ConfigError:
        return plugin_error(self._command, message)


def plugin_error(command: PluginCommand, message: str) -> ConfigError:
    """Return the error of a plugin, named with the user it speaks for."""
    return ConfigError(f"the credential plugin {command.command} of user {command.user} {message}")


def parse_credential(output: bytes, command: PluginCommand) -> _Granted:
    """Check what a plugin printed; raises ConfigError."""
    try:
        credential = msgspec.json.decode(output, type=_Credential)
    except msgspec.DecodeError as error:
        raise plugin_error(command, f"did not print an ExecCredential: {error}") from None
    if credential.kind != "ExecCredential" or credential.api_version != command.api_version:
        got = f"{credential.api_version} {credential.kind}"
        expected = f"{command.api_version} ExecCredential"
        raise plugin_error(command, f"printed a {got.strip() or 'nothing'}, not a {expected}")
    granted = credential.status
    if granted is None or not (granted.token or granted.client_certificate_data):
        raise plugin_error(command, "printed neither a token nor a certificate")
    if bool(granted.client_certificate_data) != bool(granted.client_key_data):
        raise plugin_error(command, "printed a certificate without its key, or a key without one")
    return granted


def check_plugin(command: PluginCommand) -> None:
    """Refuse what can be seen to be wrong before the plugin ever runs; raises ConfigError."""
    if not command.command:
        raise ConfigError(f"user {command.user}: the exec plugin names no command")
    if command.api_version not in _PLUGIN_APIS:
        known = " or ".join(_PLUGIN_APIS)
        got = command.api_version or "nothing"
        raise plugin_error(command, f"speaks {got}, not {known}; update the plugin and kubeconfig")
    if command.interactive not in ("Never", "IfAvailable", "Always"):
        raise plugin_error(command, "has an interactiveMode that is not Never, IfAvailable, Always")


def bearer(token: str) -> tuple[str, str]:
    """Return the header that carries a token."""
    return ("Authorization", f"Bearer {token}")


def basic(username: str, password: str) -> tuple[str, str]:
    """Return the header that carries a name and a password."""
    packed = base64.b64encode(f"{username}:{password}".encode()).decode()
    return ("Authorization", f"Basic {packed}")


def read_file(path: str, what: str) -> bytes:
    """Read a file that a kubeconfig names; raises ConfigError."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read the {what} {path}: {error.strerror}") from None


def decode_data(data: str, what: str) -> bytes:
    """Decode base64 inside a kubeconfig; raises ConfigError."""
    try:
        return base64.b64decode("".join(data.split()), validate=True)
    except (binascii.Error, ValueError):
        raise ConfigError(f"{what} is not base64; copy it again from where it came") from None


def encode_data(data: bytes) -> str:
    """Encode bytes as a kubeconfig holds them."""
    return base64.b64encode(data).decode()
