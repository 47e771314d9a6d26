"""Credentials: tokens, client certificates and exec plugins, renewed before they expire."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from everynode.api.times import TimeError, parse_time
from everynode.clock import Clock
from everynode.kube.auth.plugin_process import PluginFailure, run_plugin

_REREAD_AFTER: Final = 60.0  # seconds; the kubelet renews tokens long before they expire
_RENEW_BEFORE: Final = 30.0  # seconds before a plugin's token expires
_MAX_FILE_BYTES: Final = 3 * 1024 * 1024
# Headers, and the fields of a kubeconfig's user that they come from.
_HEADER_FIELDS: Final = {
    "Authorization": "token",
    "Impersonate-User": "as",
    "Impersonate-Uid": "as-uid",
    "Impersonate-Group": "as-groups",
}
_PLUGIN_APIS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


class ConfigError(Exception):
    """The kubeconfig or the credentials are wrong; the message is one line with what to do."""

    def __init__(self, message: str) -> None:
        # The message quotes files and programs, which may contain control characters.
        printable = "".join(letter if letter.isprintable() else " " for letter in message)
        super().__init__(" ".join(printable.split()))


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A client certificate and its key, both PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Identity:
    """The headers and the client certificate that authenticate every request."""

    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    key_pair: KeyPair | None = None


class Credentials(Protocol):
    """Provides the identity that requests are sent with."""

    async def identity(self) -> Identity:
        """Return the current identity; raises ConfigError."""
        ...

    def reject(self) -> None:
        """Note that the server refused the last identity: get a new one next time."""
        ...


class StaticCredentials:
    """An identity that never changes."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity

    async def identity(self) -> Identity:
        """Return the identity."""
        return self._identity

    def reject(self) -> None:
        """Do nothing: there is no other identity."""


@dataclass(frozen=True, slots=True)
class CredentialFiles:
    """Paths of the token, the certificate and its key; empty where there is none."""

    token: str = ""
    certificate: str = ""
    key: str = ""


class FileCredentials:
    """An identity in files that are renewed by others: service accounts, rotated certificates.

    `base` holds the parts of the identity that do not come from files.
    """

    def __init__(
        self, files: CredentialFiles, clock: Clock, *, base: Identity | None = None
    ) -> None:
        self._files = files
        self._clock = clock
        self._base = base or Identity()
        self._cached: Identity | None = None
        self._read_at = 0.0

    async def identity(self) -> Identity:
        """Return the identity as the files were at most a minute ago."""
        now = self._clock.monotonic()
        if self._cached is None or now - self._read_at >= _REREAD_AFTER:
            try:
                self._cached = self._read()
            except ConfigError:
                # A file may be missing for a moment while it is renewed; the old identity is valid.
                if self._cached is None:
                    raise
            self._read_at = now
        return self._cached

    def reject(self) -> None:
        """Read the files again next time."""
        self._cached = None

    def _read(self) -> Identity:
        identity = self._base
        if self._files.token:
            token = read_file(self._files.token, "token").decode("utf-8", "replace").strip()
            if not token:
                raise ConfigError(f"the token file {self._files.token} is empty")
            if not _is_header_value(token):
                raise ConfigError(
                    f"the token file {self._files.token} holds characters that no token has; "
                    "it must hold the token alone, on one line"
                )
            identity = replace(identity, headers=(bearer_header(token), *identity.headers))
        if self._files.certificate:
            pair = KeyPair(
                self._read_pem(self._files.certificate, "client certificate"),
                self._read_pem(self._files.key, "client key"),
            )
            identity = replace(identity, key_pair=pair)
        return identity

    def _read_pem(self, path: str, what: str) -> bytes:
        return require_pem(read_file(path, what), f"the {what} {path}")


@dataclass(frozen=True, slots=True)
class PluginCommand:
    """An exec plugin as a kubeconfig describes it."""

    command: str
    api_version: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    install_hint: str = ""
    interactive: str = "IfAvailable"  # or Never, Always
    folder: str = ""  # of the kubeconfig; a relative command starts there
    user: str = ""
    cluster: Mapping[str, Any] | None = None  # passed to the plugin if provideClusterInfo is set


class _ExecCredentialStatus(msgspec.Struct, rename="camel"):
    token: str | None = ""
    expiration_timestamp: str | None = ""
    client_certificate_data: str | None = ""
    client_key_data: str | None = ""


class _ExecCredential(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _ExecCredentialStatus | None = None


class PluginCredentials:
    """An identity that an exec plugin prints, kept until it expires.

    `base` holds the parts of the identity that do not come from the plugin.
    """

    def __init__(
        self, command: PluginCommand, clock: Clock, *, base: Identity | None = None
    ) -> None:
        self._command = command
        self._clock = clock
        self._base = base or Identity()
        self._cached: Identity | None = None
        self._expires = float("inf")
        self._lock = asyncio.Lock()

    async def identity(self) -> Identity:
        """Return the plugin's identity; the plugin runs again shortly before it expires."""
        async with self._lock:
            if self._cached is None or self._clock.now() >= self._expires - _RENEW_BEFORE:
                granted = parse_exec_credential(await self._run(), self._command)
                self._cached, self._expires = self._identity_of(granted)
            return self._cached

    def reject(self) -> None:
        """Run the plugin again next time."""
        self._cached = None

    def _identity_of(self, granted: _ExecCredentialStatus) -> tuple[Identity, float]:
        identity = self._base
        if granted.token:
            identity = replace(identity, headers=(bearer_header(granted.token), *identity.headers))
        if granted.client_certificate_data and granted.client_key_data:
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
            ended = await run_plugin(
                self._clock,
                (program, *command.args),
                self._environment(interactive=interactive),
                interactive=interactive,
            )
        except OSError as error:
            raise self._error(f"cannot be started: {error.strerror}") from error
        except PluginFailure as failure:
            raise self._error(str(failure)) from None
        if ended.code != 0:
            errors = ended.err.decode("utf-8", "replace").strip().splitlines()
            raise self._error(f"failed: {errors[-1] if errors else f'exit code {ended.code}'}")
        return ended.out

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
        return {**os.environ, **self._command.env, "KUBERNETES_EXEC_INFO": json.dumps(info)}

    def _error(self, message: str) -> ConfigError:
        return plugin_error(self._command, message)


def plugin_error(command: PluginCommand, message: str) -> ConfigError:
    """Return an error that names the plugin and its user."""
    return ConfigError(f"the credential plugin {command.command} of user {command.user} {message}")


def parse_exec_credential(output: bytes, command: PluginCommand) -> _ExecCredentialStatus:
    """Parse and check the ExecCredential that a plugin printed; raises ConfigError."""
    try:
        credential = msgspec.json.decode(output, type=_ExecCredential)
    except (ValueError, RecursionError) as error:
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
    if granted.token and not _is_header_value(granted.token):
        raise plugin_error(command, "printed a token with characters that cannot be sent")
    return granted


def check_plugin(command: PluginCommand) -> None:
    """Check a plugin's configuration before it runs; raises ConfigError."""
    if not command.command:
        raise ConfigError(f"user {command.user}: the exec plugin names no command")
    if command.api_version not in _PLUGIN_APIS:
        known = " or ".join(_PLUGIN_APIS)
        got = command.api_version or "nothing"
        raise plugin_error(command, f"speaks {got}, not {known}; update the plugin and kubeconfig")
    if command.interactive not in ("Never", "IfAvailable", "Always"):
        raise plugin_error(command, "has an interactiveMode that is not Never, IfAvailable, Always")


def bearer_header(token: str) -> tuple[str, str]:
    """Return the header of a bearer token."""
    return ("Authorization", f"Bearer {token}")


def basic_header(username: str, password: str) -> tuple[str, str]:
    """Return the header of a username and a password."""
    packed = base64.b64encode(f"{username}:{password}".encode()).decode()
    return ("Authorization", f"Basic {packed}")


def read_file(path: str, what: str, *, blocking: bool = False) -> bytes:
    """Read a file that a kubeconfig names, or with `blocking` also a pipe; raises ConfigError.

    Without `blocking` it never waits, so that the event loop is not blocked.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | (0 if blocking else os.O_NONBLOCK))
        with os.fdopen(descriptor, "rb") as file:
            found = file.read(_MAX_FILE_BYTES + 1) or b""
    except OSError as error:
        raise ConfigError(f"cannot read the {what} {path}: {error.strerror}") from None
    except ValueError as error:  # a zero byte in the name
        raise ConfigError(f"cannot read the {what} {path!r}: {error}") from None
    if len(found) > _MAX_FILE_BYTES:
        raise ConfigError(
            f"cannot read the {what} {path}: it is longer than {_MAX_FILE_BYTES} bytes"
        )
    return found


def _is_header_value(value: str) -> bool:
    """Whether a value is valid in a header."""
    return value.isascii() and value.isprintable()


def check_headers(headers: Iterable[tuple[str, str]], whose: str) -> None:
    """Check that the values are valid in headers; raises ConfigError."""
    for name, value in headers:
        if not _is_header_value(value):
            field = _HEADER_FIELDS.get(name, name)
            raise ConfigError(
                f"{whose}: {field} holds characters that cannot be sent; only ASCII on one line can"
            )


def decode_base64(data: str, what: str) -> bytes:
    """Decode base64 inside a kubeconfig; raises ConfigError."""
    try:
        return base64.b64decode("".join(data.split()), validate=True)
    except (binascii.Error, ValueError):
        raise ConfigError(f"{what} is not base64; copy it again from where it came") from None


def require_pem(data: bytes, what: str) -> bytes:
    """Return the data; raises ConfigError where it cannot be PEM."""
    if b"-----BEGIN " not in data:
        raise ConfigError(f"{what} is not PEM: no line of it begins with -----BEGIN; copy it again")
    return data


def encode_base64(data: bytes) -> str:
    """Encode bytes as base64, as kubeconfigs hold them."""
    return base64.b64encode(data).decode()
