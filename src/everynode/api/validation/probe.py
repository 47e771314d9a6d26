"""Validation of probes and lifecycle hooks: one handler each, numbers in range."""

from __future__ import annotations

from typing import Any, Final

from everynode.api.validation.accessors import number, section, sections, text
from everynode.api.validation.field_errors import (
    GREATER_THAN_0,
    FieldErrors,
    Object,
    at_least_zero,
    forbidden,
    invalid,
    invalid_each,
    is_int,
    required,
    unsupported,
)
from everynode.api.validation.names import header_name, port_name, port_number

PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_NUMBER_FIELDS: Final = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)


def check_probes(container: Object, path: str) -> FieldErrors:
    """Errors in the probes of a container."""
    for name in PROBES:
        probe = section(container, name)
        if probe is not None:
            yield from _check_probe(probe, f"{path}.{name}", readiness=name == "readinessProbe")


def check_lifecycle(container: Object, path: str, *, grace: int | None) -> FieldErrors:
    """Errors in the postStart and preStop hooks of a container."""
    lifecycle = section(container, "lifecycle")
    if lifecycle is None:
        return
    for name in ("postStart", "preStop"):
        handler = section(lifecycle, name)
        if handler is not None:
            yield from _check_handler(handler, f"{path}.lifecycle.{name}", grace=grace)


def _check_probe(probe: Object, path: str, *, readiness: bool) -> FieldErrors:
    yield from _check_handler(probe, path, grace=None)
    for name in _NUMBER_FIELDS:
        yield from at_least_zero(f"{path}.{name}", probe.get(name))
    grace = number(probe, "terminationGracePeriodSeconds")
    if grace is not None and grace <= 0:
        yield invalid(f"{path}.terminationGracePeriodSeconds", grace, GREATER_THAN_0)
    if readiness and grace is not None:
        detail = "must not be set for readinessProbes"
        yield invalid(f"{path}.terminationGracePeriodSeconds", grace, detail)
    successes = number(probe, "successThreshold")
    if not readiness and successes != 1:
        yield invalid(f"{path}.successThreshold", successes, "must be 1")


def _check_handler(handler: Object, path: str, *, grace: int | None) -> FieldErrors:
    found = [name for name in _HANDLERS if section(handler, name) is not None]
    if not found:
        yield required(path, "must specify a handler type")
        return
    here, action = f"{path}.{found[0]}", section(handler, found[0]) or {}
    if found[0] == "exec" and not action.get("command"):
        yield required(f"{here}.command")
    elif found[0] == "httpGet":
        yield from _check_http(action, here)
    elif found[0] in ("tcpSocket", "grpc"):
        yield from _check_port(action.get("port"), f"{here}.port")
    elif found[0] == "sleep":
        yield from _check_sleep(number(action, "seconds") or 0, here, grace)
    for name in found[1:]:
        yield forbidden(f"{path}.{name}", "may not specify more than 1 handler type")


def _check_http(action: Object, path: str) -> FieldErrors:
    if not text(action, "path"):
        yield required(f"{path}.path")
    yield from _check_port(action.get("port"), f"{path}.port")
    scheme = text(action, "scheme")
    if scheme not in ("HTTP", "HTTPS"):
        yield unsupported(f"{path}.scheme", scheme, ("HTTP", "HTTPS"))
    for _, header in sections(action, "httpHeaders", path):
        name = text(header, "name")
        yield from invalid_each(f"{path}.httpHeaders", name, header_name(name))


def _check_port(port: Any, path: str) -> FieldErrors:
    if isinstance(port, str):
        yield from invalid_each(path, port, port_name(port))
    else:
        given = port if is_int(port) else 0
        yield from invalid_each(path, given, port_number(given))


def _check_sleep(seconds: int, path: str, grace: int | None) -> FieldErrors:
    if grace is not None and not 0 <= seconds <= grace:
        detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
        yield invalid(path, seconds, detail)
