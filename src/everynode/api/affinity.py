"""Node affinity: whether a pod may run on a node, by node selector and required affinity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from everynode.api import keys
from everynode.api.daemonset import LabelSelectorRequirement
from everynode.api.objects import Affinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from everynode.api.selector import LabelMatcher, SelectorError

_LABEL_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_FIELD_OPERATORS: Final = ("In", "NotIn")

# The matcher of the labels; field, value, and whether the field must or must not have the value.
_Term = tuple[LabelMatcher, tuple[tuple[str, str, bool], ...]]


class NodeMatcher:
    """A pod's node selector and required node affinity, compiled once for many nodes.

    An invalid term matches no node; `faults` lists its errors.
    """

    __slots__ = ("_pairs", "_terms", "faults")

    def __init__(self, node_selector: Mapping[str, str], affinity: Affinity | None = None) -> None:
        self._pairs = tuple(sorted(node_selector.items()))
        self._terms: tuple[_Term, ...] | None = None
        self.faults: tuple[str, ...] = ()
        required = required_terms(affinity)
        if required is not None:
            self._terms, self.faults = _compile_terms(required)

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether the pod may run on the node of that name with these labels."""
        for key, value in self._pairs:
            if labels.get(key) != value:
                return False
        return self._terms is None or _any_term(self._terms, name, labels)

    def mismatch(self, name: str, labels: Mapping[str, str]) -> str:
        """Return why the pod may not run on that node; empty when it may."""
        for key, value in self._pairs:
            if labels.get(key) != value:
                return f"node selector {key}={value} does not match"
        if self._terms is None or _any_term(self._terms, name, labels):
            return ""
        return "required node affinity does not match"


def required_terms(affinity: Affinity | None) -> NodeSelector | None:
    """Return the required node affinity, None where every node matches."""
    if affinity is None or affinity.node_affinity is None:
        return None
    return affinity.node_affinity.required


def pinned_node(affinity: Affinity | None) -> str:
    """Return the node that a pod is pinned to by its affinity, empty if none."""
    return "" if affinity is None else affinity.pinned_node


def _any_term(terms: tuple[_Term, ...], name: str, labels: Mapping[str, str]) -> bool:
    for matcher, fields in terms:
        if matcher.matches(labels) and all(
            # matchFields supports metadata.name only; any other field counts as empty.
            ((name if field == keys.NODE_NAME_FIELD else "") == value) is wanted
            for field, value, wanted in fields
        ):
            return True
    return False


def _compile_terms(required: NodeSelector) -> tuple[tuple[_Term, ...], tuple[str, ...]]:
    terms, faults = [], []
    for index, term in enumerate(required.node_selector_terms):
        if not term.match_expressions and not term.match_fields:
            continue  # an empty term selects nothing
        try:
            terms.append(_compile_term(term))
        except SelectorError as error:
            faults.append(f"nodeSelectorTerms[{index}].{error}")
    return tuple(terms), tuple(faults)


def _compile_term(term: NodeSelectorTerm) -> _Term:
    fields = tuple(
        _compile_field(field, f"matchFields[{index}]")
        for index, field in enumerate(term.match_fields)
    )
    return LabelMatcher(_requirements(term.match_expressions)), fields


def _requirements(
    expressions: Iterable[NodeSelectorRequirement],
) -> Iterable[LabelSelectorRequirement]:
    for index, each in enumerate(expressions):
        path = f"matchExpressions[{index}]"
        if each.operator not in _LABEL_OPERATORS:
            raise SelectorError(_unsupported(path, each.operator, _LABEL_OPERATORS))
        requirement = LabelSelectorRequirement(each.key, each.operator, each.values)
        try:
            LabelMatcher((requirement,))
        except SelectorError as error:
            raise SelectorError(f"{path}.{error}") from None
        yield requirement


def _compile_field(field: NodeSelectorRequirement, path: str) -> tuple[str, str, bool]:
    if field.operator not in _FIELD_OPERATORS:
        raise SelectorError(_unsupported(path, field.operator, _FIELD_OPERATORS))
    if len(field.values) != 1:
        raise SelectorError(f"{path}.values: must have one element")
    return field.key, field.values[0], field.operator == "In"


def _unsupported(path: str, operator: str, supported: Iterable[str]) -> str:
    names = ", ".join(f'"{name}"' for name in sorted(supported))
    return f'{path}.operator: Unsupported value: "{operator}": supported values: {names}'
