"""Rules for names: DNS labels, subdomains, ports, variables. A rule yields its error messages."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import Final

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_SEARCH_LABEL: Final = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SEARCH: Final = rf"{_SEARCH_LABEL}(\.{_SEARCH_LABEL})*"
_HEADER: Final = "[-A-Za-z0-9]+"
_CONFIG_KEY: Final = "[-._a-zA-Z0-9]+"
_VARIABLE: Final = re.compile("[ -<>-~]*")  # printable ASCII but "="
_PORT: Final = re.compile("[-a-z0-9]+")
_LETTER: Final = re.compile("[a-z]")

_label: Final = re.compile(_LABEL)
_subdomain: Final = re.compile(_SUBDOMAIN)
_search: Final = re.compile(_SEARCH)
_header: Final = re.compile(_HEADER)
_config_key: Final = re.compile(_CONFIG_KEY)


def pattern_rule(requirement: str, pattern: str, *examples: str) -> str:
    """The API server's message for a text that does not match a pattern."""
    given = " or ".join(f"'{example}', " for example in examples)
    return f"{requirement} (e.g. {given}regex used for validation is '{pattern}')"


_LABEL_RULE: Final = pattern_rule(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character",
    _LABEL,
    "my-name",
    "123-abc",
)
_SUBDOMAIN_RULE: Final = pattern_rule(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character",
    _SUBDOMAIN,
    "example.com",
)
_SEARCH_RULE: Final = pattern_rule(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' "
    "or '.', and must start and end with an alphanumeric character",
    _SEARCH,
    "example.com",
)
_HEADER_RULE: Final = pattern_rule(
    "a valid HTTP header must consist of alphanumeric characters or '-'", _HEADER, "X-Header-Name"
)
_CONFIG_KEY_RULE: Final = pattern_rule(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    _CONFIG_KEY,
    "key.name",
    "KEY_NAME",
    "key-name",
)

_NAME_LABEL: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_name_label: Final = re.compile(_NAME_LABEL)
_NAME_LABEL_RULE: Final = pattern_rule(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character",
    _NAME_LABEL,
    "my-name",
    "abc-123",
)


def dns_1035_label(name: str) -> Iterator[str]:
    """The rule for parts of addresses, such as resources and versions: RFC 1035."""
    if len(name) > 63:
        yield "must be no more than 63 characters"
    if not _name_label.fullmatch(name):
        yield _NAME_LABEL_RULE


def dns_label(name: str) -> Iterator[str]:
    """The rule for containers, volumes, namespaces: one part of a host name."""
    if len(name) > 63:
        yield "must be no more than 63 characters"
    if not _label.fullmatch(name):
        yield "must not contain dots" if _subdomain.fullmatch(name) else _LABEL_RULE


def dns_subdomain(name: str) -> Iterator[str]:
    """The rule for most objects: a host name."""
    if len(name) > 253:
        yield "must be no more than 253 characters"
    if not _subdomain.fullmatch(name):
        yield _SUBDOMAIN_RULE


def dns_search(name: str) -> Iterator[str]:
    """The rule for a search path of the resolver, where parts may start with an underscore."""
    if len(name) > 253:
        yield "must be no more than 253 characters"
    if not _search.fullmatch(name):
        yield _SEARCH_RULE


def port_number(port: int) -> Iterator[str]:
    """The rule for the number of a port."""
    if not 1 <= port <= 65535:
        yield "must be between 1 and 65535, inclusive"


def port_name(name: str) -> Iterator[str]:
    """The rule for the name of a port."""
    if len(name) > 15:
        yield "must be no more than 15 characters"
    if not _PORT.fullmatch(name):
        yield "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
    if not _LETTER.search(name):
        yield "must contain at least one letter (a-z)"
    if "--" in name:
        yield "must not contain consecutive hyphens"
    if name.startswith("-") or name.endswith("-"):
        yield "must not begin or end with a hyphen"


def variable_name(name: str) -> Iterator[str]:
    """The rule for an environment variable."""
    if not name:
        yield "environment variable name must be non-empty"
    if not _VARIABLE.fullmatch(name):
        yield (
            "a valid environment variable name must consist only of printable ASCII characters "
            "other than '='"
        )


def config_key(name: str) -> Iterator[str]:
    """The rule for a key of a config map or a secret."""
    if len(name) > 253:
        yield "must be no more than 253 characters"
    if not _config_key.fullmatch(name):
        yield _CONFIG_KEY_RULE
    if name in (".", ".."):
        yield f"must not be '{name}'"
    elif name.startswith(".."):
        yield "must not start with '..'"


def header_name(name: str) -> Iterator[str]:
    """The rule for an HTTP header."""
    if not _header.fullmatch(name):
        yield _HEADER_RULE


def ip_address(text: str) -> Iterator[str]:
    """The rule for an address, of either family."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        yield "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"


def user_id(number: int) -> Iterator[str]:
    """The rule for the id of a user or a group."""
    if not 0 <= number <= 2**31 - 1:
        yield "must be between 0 and 2147483647, inclusive"


def relative_path(path: str) -> Iterator[str]:
    """The rule for a relative path without `..`."""
    if path.startswith("/"):
        yield "must be a relative path"
    yield from no_parent_path(path)


def no_parent_path(path: str) -> Iterator[str]:
    """The rule for a path without `..`."""
    if ".." in path.split("/"):
        yield "must not contain '..'"


def file_path(path: str) -> Iterator[str]:
    """The rule for a file in a volume: relative, and without the prefix `..` of the kubelet."""
    yield from relative_path(path)
    if path.startswith("..") and not path.startswith("../"):
        yield "must not start with '..'"
