"""Quantities such as 500m or 1.5Gi: parsing, arithmetic, and Kubernetes' canonical form."""

from __future__ import annotations

import enum
import re
from functools import lru_cache
from typing import Final

import msgspec

FORMAT_WRONG: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
NUMBER_WRONG: Final = "unable to parse numeric part of quantity"
SUFFIX_WRONG: Final = "unable to parse quantity's suffix"


class QuantityError(ValueError):
    """A text that is not a quantity; the message is that of the API server."""


class Format(enum.Enum):
    """The suffix family a quantity was written with; it is printed with the same."""

    DECIMAL = "DecimalSI"
    BINARY = "BinarySI"
    EXPONENT = "DecimalExponent"


_NANO = 10**9
_DECIMAL: Final = {
    "n": -9,
    "u": -6,
    "m": -3,
    "": 0,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
    "E": 18,
}
_DECIMAL_SUFFIX: Final = {power: suffix for suffix, power in _DECIMAL.items()}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_BINARY_SUFFIX: Final = {power: suffix for suffix, power in _BINARY.items()}
_BINARY_MAX = (2**63 - 1) * _NANO
# Larger than any real amount, and small enough that no text needs a number of a megabyte.
_EXPONENT_MAX = 300
_TEXT_MAX = 400

# Possessive quantifiers, so that a text of many digits causes no backtracking.
_SPLIT = re.compile(r"([+-]?)([0-9]*+)(?:\.([0-9]*+))?([eEinumkKMGTP]*+[-+]?[0-9]*+)")
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)")


class Quantity(msgspec.Struct, frozen=True, gc=False, eq=False):
    """An exact amount of a resource in billionths, the finest unit of Kubernetes."""

    nanos: int
    format: Format = Format.DECIMAL

    def __eq__(self, other: object) -> bool:
        return self.nanos == other.nanos if isinstance(other, Quantity) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __lt__(self, other: Quantity) -> bool:
        return self.nanos < other.nanos

    def __le__(self, other: Quantity) -> bool:
        return self.nanos <= other.nanos

    def __gt__(self, other: Quantity) -> bool:
        return self.nanos > other.nanos

    def __ge__(self, other: Quantity) -> bool:
        return self.nanos >= other.nanos

    def __add__(self, other: Quantity) -> Quantity:
        return Quantity(self.nanos + other.nanos, (self if self.nanos else other).format)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.nanos - other.nanos, (self if self.nanos else other).format)

    def __str__(self) -> str:
        return _format(self)

    @property
    def milli(self) -> int:
        """The amount in thousandths, rounded away from zero: the scheduler's unit for cpu."""
        return _divide_up(self.nanos, 10**6)

    @property
    def units(self) -> int:
        """The amount in whole units, rounded away from zero: bytes of memory, devices."""
        return _divide_up(self.nanos, _NANO)

    def at_milli(self) -> Quantity:
        """Return the quantity rounded away from zero to thousandths, as resources are stored."""
        return Quantity(self.milli * 10**6, self.format)


ZERO: Final = Quantity(0)


def parse_quantity(value: str | int | float) -> Quantity:
    """Parse a JSON string or number; raises QuantityError."""
    if type(value) is int:
        return Quantity(value * _NANO)
    return _parse(value if isinstance(value, str) else repr(value))


@lru_cache(maxsize=4096)
def _parse(text: str) -> Quantity:
    if text.isascii() and text.isdigit() and len(text) <= 18:
        return Quantity(int(text) * _NANO)
    found = _SPLIT.fullmatch(text) if text else None
    if found is None:
        raise QuantityError(FORMAT_WRONG)
    if len(text) > _TEXT_MAX:
        raise QuantityError(NUMBER_WRONG)
    sign, whole, fraction, suffix = found.groups("")
    nanos, form = _measure(int("0" + whole + fraction), len(fraction), suffix)
    return Quantity(-nanos if sign == "-" else nanos, form)


def _measure(digits: int, places: int, suffix: str) -> tuple[int, Format]:
    """Return `digits` × 10^-places × suffix in billionths, rounded up, and the print format."""
    power = _BINARY.get(suffix)
    if power is not None:
        nanos = min(_divide_up(digits * _NANO << power, 10**places), _BINARY_MAX)
        return nanos, Format.DECIMAL if 0 < nanos < _NANO else Format.BINARY
    exponent, form = _interpret(suffix)
    shift = exponent - places + 9
    if shift >= 0:
        return digits * 10**shift, form
    return _divide_up(digits, 10**-shift), form


def _interpret(suffix: str) -> tuple[int, Format]:
    known = _DECIMAL.get(suffix)
    if known is not None:
        return known, Format.DECIMAL
    found = _EXPONENT.fullmatch(suffix)
    if found is None or abs(int(found[1])) > _EXPONENT_MAX:
        raise QuantityError(SUFFIX_WRONG)
    return int(found[1]), Format.EXPONENT


def _divide_up(number: int, by: int) -> int:
    return -(-number // by) if number > 0 else number // by


def _format(quantity: Quantity) -> str:
    nanos, form = quantity.nanos, quantity.format
    if nanos == 0:
        return "0"
    whole, rest = divmod(nanos, _NANO)
    # Binary suffixes cannot express a fraction, nor less than one Ki: use decimal ones there.
    if form is Format.BINARY and rest == 0 and abs(whole) >= 1024:
        return _format_binary(whole)
    exponent = -9
    while nanos % 1000 == 0 and (form is Format.EXPONENT or exponent < 18):
        nanos //= 1000
        exponent += 3
    if form is Format.EXPONENT:
        return f"{nanos}e{exponent}" if exponent else str(nanos)
    return f"{nanos}{_DECIMAL_SUFFIX[exponent]}"


def _format_binary(whole: int) -> str:
    power = 0
    while whole % 1024 == 0 and power < 60:
        whole //= 1024
        power += 10
    return f"{whole}{_BINARY_SUFFIX[power]}" if power else str(whole)
