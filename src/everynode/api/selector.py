"""Label selectors: validation, matching, and labelSelector queries."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from functools import lru_cache
from typing import Final

import msgspec

from everynode.api.daemonset import LabelSelector, LabelSelectorRequirement

_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_NAME_RULE: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', "
    f"regex used for validation is '{_NAME}')"
)
_VALUE_RULE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or "
    f"'12345', regex used for validation is '({_NAME})?')"
)
_SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', "
    f"regex used for validation is '{_SUBDOMAIN}')"
)
_name_regex = re.compile(_NAME)
_value_regex = re.compile(f"({_NAME})?")
_subdomain_regex = re.compile(_SUBDOMAIN)
_INTEGER = re.compile("[+-]?[0-9]{1,19}")


class SelectorError(ValueError):
    """An invalid selector; the message is that of the API server."""


# --- The syntax of labels ----------------------------------------------------------------------


@lru_cache(maxsize=1024)
def label_key_errors(key: str) -> tuple[str, ...]:
    """Return the errors of a label key, with Kubernetes' messages; empty when it is valid."""
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        rule = f"a valid label key {_NAME_RULE} with an optional DNS subdomain prefix and '/'"
        return (f"{rule} (e.g. 'example.com/MyName')",)
    faults = []
    if slash and not prefix:
        faults.append("prefix part must be non-empty")
    elif slash:
        faults += [f"prefix part {fault}" for fault in _subdomain_faults(prefix)]
    if not name:
        faults.append("name part must be non-empty")
    elif len(name.encode()) > 63:
        faults.append("name part must be no more than 63 bytes")
    if not _name_regex.fullmatch(name):
        faults.append(f"name part {_NAME_RULE}")
    return tuple(faults)


def _subdomain_faults(text: str) -> Iterable[str]:
    if len(text.encode()) > 253:
        yield "must be no more than 253 bytes"
    if not _subdomain_regex.fullmatch(text):
        yield _SUBDOMAIN_RULE


@lru_cache(maxsize=1024)
def label_value_errors(value: str) -> tuple[str, ...]:
    """Return the errors of a label value, with Kubernetes' messages; empty when it is valid."""
    faults = []
    if len(value.encode()) > 63:
        faults.append("must be no more than 63 bytes")
    if not _value_regex.fullmatch(value):
        faults.append(_VALUE_RULE)
    return tuple(faults)


def parse_int64(text: str) -> int | None:
    """Return the integer that Gt and Lt compare; None where the text is not an int64."""
    if not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


# --- Matching ----------------------------------------------------------------------------------


class Beyond:
    """The set of label values that are integers above a bound, or below it."""

    __slots__ = ("above", "bound")

    def __init__(self, bound: int, *, above: bool) -> None:
        self.bound = bound
        self.above = above

    def __contains__(self, value: object) -> bool:
        number = parse_int64(value) if isinstance(value, str) else None
        if number is None:
            return False
        return number > self.bound if self.above else number < self.bound


# One test of a matcher: label key, set of values (None means absent), and whether the value must
# be in the set or must not.
Test = tuple[str, Container[str | None], bool]
_ABSENT: Final = frozenset((None,))


class LabelMatcher:
    """A label selector, compiled once to match many objects."""

    __slots__ = ("_tests", "requirements")

    def __init__(self, requirements: Iterable[LabelSelectorRequirement]) -> None:
        self.requirements = tuple(sorted(requirements, key=lambda each: each.key))
        self._tests = tuple(_compile(each) for each in self.requirements)

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether these labels satisfy every requirement."""
        for key, values, wanted in self._tests:  # noqa: SIM110 - a generator costs twice as much
            if (labels.get(key) in values) is not wanted:
                return False
        return True

    @property
    def everything(self) -> bool:
        """Whether the selector has no requirement and so selects everything."""
        return not self._tests

    def exact(self, key: str) -> str | None:
        """Return the only value that the label may have, if any, for lookup in an index."""
        for each in self.requirements:
            if each.key == key and each.operator in _ONE_OF and len(each.values) == 1:
                return each.values[0]
        return None

    def __str__(self) -> str:
        return ",".join(format_requirement(each) for each in self.requirements)


# Operators of a LabelSelector, and their forms in a labelSelector query.
_ONE_OF: Final = ("In", "=", "==")
_NONE_OF: Final = ("NotIn", "!=")


def _compile(requirement: LabelSelectorRequirement) -> Test:
    """Compile one requirement into a test; raises SelectorError where it is invalid."""
    key, operator, values = requirement.key, requirement.operator, requirement.values
    message = _fault(requirement)
    if message:
        raise SelectorError(message)
    if operator in _ONE_OF:
        return key, frozenset(values), True
    if operator in _NONE_OF:
        return key, frozenset(values), False
    if operator == "Exists":
        return key, _ABSENT, False
    if operator == "DoesNotExist":
        return key, _ABSENT, True
    bound = parse_int64(values[0])
    assert bound is not None
    return key, Beyond(bound, above=operator == "Gt"), True


def _fault(requirement: LabelSelectorRequirement) -> str:
    """Return the errors of a requirement, with Kubernetes' messages; empty when it is valid."""
    key, operator, values = requirement.key, requirement.operator, requirement.values
    faults = []
    if label_key_errors(key):
        faults.append(f"key: Invalid value: {_quote(key)}: {'; '.join(label_key_errors(key))}")
    shape = _shape_fault(operator, values)
    if shape:
        faults.append(shape)
    for index, value in enumerate(values):
        if label_value_errors(value):
            path, reason = f"values[{index}][{key}]", "; ".join(label_value_errors(value))
            faults.append(f"{path}: Invalid value: {_quote(value)}: {reason}")
    return faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]" if faults else ""


def _shape_fault(operator: str, values: tuple[str, ...]) -> str:
    listed = "[" + ",".join(_quote(value) for value in values) + "]"
    problem = f"values: Invalid value: {listed}: "
    if operator in ("In", "NotIn"):
        problem += "for 'in', 'notin' operators, values set can't be empty"
        return "" if values else problem
    if operator in ("=", "==", "!="):
        problem += "exact-match compatibility requires one single value"
        return "" if len(values) == 1 else problem
    if operator in ("Exists", "DoesNotExist"):
        problem += "values set must be empty for exists and does not exist"
        return problem if values else ""
    if operator not in ("Gt", "Lt"):
        return f"{_quote(operator)} is not a valid label selector operator"
    if len(values) != 1:
        return problem + "for 'Gt', 'Lt' operators, exactly one value is required"
    if parse_int64(values[0]) is None:
        quoted = _quote(values[0])
        reason = "for 'Gt', 'Lt' operators, the value must be an integer"
        return f"values[0]: Invalid value: {quoted}: {reason}"
    return ""


def _quote(text: str) -> str:
    return msgspec.json.encode(text).decode()


def compile_selector(selector: LabelSelector) -> LabelMatcher:
    """Compile a LabelSelector; raises SelectorError where it is invalid."""
    pairs = (
        LabelSelectorRequirement(key, "=", (value,)) for key, value in selector.match_labels.items()
    )
    for each in selector.match_expressions:
        if each.operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
            message = f"{_quote(each.operator)} is not a valid label selector operator"
            raise SelectorError(message)
    return LabelMatcher((*pairs, *selector.match_expressions))


def matches(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Whether labels match; no selector selects nothing, an empty one everything.

    To match many objects, use `compile_selector` once.
    """
    return selector is not None and compile_selector(selector).matches(labels)


# --- Query text --------------------------------------------------------------------------------


def format_selector(selector: LabelSelector, *, empty: str = "") -> str:
    """Return the selector as a labelSelector query, and `empty` for an empty one."""
    return str(compile_selector(selector)) or empty


def format_requirement(requirement: LabelSelectorRequirement) -> str:
    """Return one requirement in the syntax of a labelSelector query."""
    key, operator = requirement.key, requirement.operator
    values = ",".join(sorted(requirement.values))
    if operator == "Exists":
        return key
    if operator == "DoesNotExist":
        return f"!{key}"
    if operator in ("In", "NotIn"):
        return f"{key} {operator.lower()} ({values})"
    sign = {"Gt": ">", "Lt": "<"}.get(operator, operator)
    return f"{key}{sign}{values}"


_TOKEN = re.compile(r"[ \t\r\n]*(==|!=|[=!(),<>]|[^=!(),<> \t\r\n]+|$)")
_SYMBOLS: Final = frozenset(("", "==", "!=", "=", "!", "(", ")", ",", "<", ">"))
_SIGNS: Final = {
    "in": "In",
    "notin": "NotIn",
    "=": "=",
    "==": "==",
    "!=": "!=",
    ">": "Gt",
    "<": "Lt",
}


@lru_cache(maxsize=256)
def parse_query(text: str) -> LabelMatcher:
    """Parse a labelSelector query; raises SelectorError with the API server's message."""
    return LabelMatcher(_Query(text).requirements())


class _Query:
    """Parser of a labelSelector query; an empty token marks the end."""

    def __init__(self, text: str) -> None:
        self._tokens = [found[1] for found in _TOKEN.finditer(text)]
        self._position = 0

    def requirements(self) -> list[LabelSelectorRequirement]:
        found: list[LabelSelectorRequirement] = []
        while (token := self._peek()) != "":
            if token in _SYMBOLS and token != "!":
                raise SelectorError(f"found '{token}', expected: !, identifier, or 'end of string'")
            found.append(self._parse_checked())
            token = self._next()
            if token == "":
                break
            if token != ",":
                raise SelectorError(f"found '{token}', expected: ',' or 'end of string'")
            following = self._peek()
            if following in _SYMBOLS and following != "!":
                raise SelectorError(f"found '{following}', expected: identifier after ','")
        return found

    def _parse_checked(self) -> LabelSelectorRequirement:
        try:
            requirement = self._requirement()
            message = _fault(requirement)
            if message:
                raise SelectorError(message)
        except SelectorError as error:
            raise SelectorError(f"unable to parse requirement: {error}") from None
        return requirement

    def _requirement(self) -> LabelSelectorRequirement:
        negated = self._peek() == "!"
        if negated:
            self._next()
        key = self._identifier()
        if label_key_errors(key):
            reason = "; ".join(label_key_errors(key))
            raise SelectorError(f"<nil>: Invalid value: {_quote(key)}: {reason}")
        if negated:
            return LabelSelectorRequirement(key, "DoesNotExist")
        if self._peek() in ("", ","):
            return LabelSelectorRequirement(key, "Exists")
        sign = self._next()
        if sign not in _SIGNS:
            raise SelectorError(f"found '{sign}', expected: in, notin, =, ==, !=, gt, lt")
        if sign in ("in", "notin"):
            return LabelSelectorRequirement(key, _SIGNS[sign], self._values())
        return LabelSelectorRequirement(key, _SIGNS[sign], (self._value(),))

    def _identifier(self) -> str:
        token = self._next()
        if token in _SYMBOLS:
            raise SelectorError(f"found '{token}', expected: identifier")
        return token

    def _value(self) -> str:
        return "" if self._peek() in ("", ",") else self._identifier()

    def _values(self) -> tuple[str, ...]:
        """Parse values in parentheses; a missing value beside a comma or parenthesis is empty."""
        token = self._next()
        if token != "(":
            raise SelectorError(f"found '{token}' expected: '('")
        values, expected = [""], "',', ')' or identifier"
        while (token := self._next()) != ")":
            if token == ",":
                values.append("")
                expected = "',', or identifier"
            elif token in _SYMBOLS or values[-1]:
                raise SelectorError(f"found '{token}', expected: {expected}")
            else:
                values[-1] = token
                expected = "',' or ')'"
        return tuple(sorted(set(values)))

    def _peek(self) -> str:
        return self._tokens[self._position] if self._position < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self._position += 1
        return token
