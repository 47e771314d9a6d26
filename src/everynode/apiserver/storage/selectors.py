"""Selectors: which objects a list, watch or deletecollection covers (namespace, labels, fields)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import msgspec

from everynode.api.fields import parse_fields
from everynode.api.selector import LabelMatcher, SelectorError, parse_query
from everynode.apiserver.errors import bad_request
from everynode.apiserver.storage.store import Record

FieldReader = Callable[[Record], str]


class Selection(msgspec.Struct, frozen=True):
    """Namespace, label selector and field selector of a request; empty selects everything."""

    namespace: str = ""
    labels: LabelMatcher | None = None
    fields: tuple[tuple[FieldReader, str, bool], ...] = ()
    name: str = ""  # the only name that is selected, if there is one
    first_field: str | None = None  # the only value of the first selectable field, likewise

    @property
    def filtered(self) -> bool:
        """Whether there is a label or field selector."""
        return self.labels is not None or bool(self.fields)

    def matches(self, record: Record) -> bool:
        """Whether the object is selected."""
        if self.namespace and record.namespace != self.namespace:
            return False
        for read, value, equal in self.fields:
            if (read(record) == value) is not equal:
                return False
        return self.labels is None or self.labels.matches(record.labels)


@lru_cache(maxsize=512)
def parse_selection(
    namespace: str, labels: str, fields: str, *, selectable: Sequence[str], custom: bool = False
) -> Selection:
    """Parse selectors; `selectable` names the values in `Record.fields`, in order."""
    try:
        terms = parse_fields(fields).terms if fields else ()
        matcher = parse_query(labels) if labels else None
    except SelectorError as error:
        raise bad_request(str(error)) from None
    readers = [_reader(term.field, selectable, custom=custom) for term in terms]
    wanted = zip(readers, terms, strict=True)
    equal = {term.field: term.value for term in terms if term.equal}
    return Selection(
        namespace,
        matcher,
        tuple((r, term.value, term.equal) for r, term in wanted),
        name=equal.get("metadata.name", ""),
        first_field=equal.get(selectable[0]) if selectable else None,
    )


def _reader(field: str, selectable: Sequence[str], *, custom: bool) -> FieldReader:
    if field == "metadata.name":
        return lambda record: record.name
    if field == "metadata.namespace":
        return lambda record: record.namespace
    if field in selectable:
        index = selectable.index(field)
        return lambda record: record.fields[index]
    if selectable or custom:
        raise bad_request(f"field label not supported: {field}")
    known = '"metadata.name", "metadata.namespace"'
    raise bad_request(f'"{field}" is not a known field selector: only {known}')
