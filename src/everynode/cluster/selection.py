"""Which objects a list or a watch is about: namespace, labels and fields of a query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import msgspec

from everynode.api.fields import parse_fields
from everynode.api.selector import Matcher, SelectorError, parse_query
from everynode.cluster.errors import bad_request
from everynode.cluster.store import Record

Reader = Callable[[Record], str]


class Selection(msgspec.Struct, frozen=True):
    """A namespace, labels and fields; empty selects everything."""

    namespace: str = ""
    labels: Matcher | None = None
    fields: tuple[tuple[Reader, str, bool], ...] = ()

    @property
    def filtered(self) -> bool:
        """Whether there is anything beyond the namespace to ask of an object."""
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
def select(
    namespace: str, labels: str, fields: str, *, selectable: Sequence[str], custom: bool = False
) -> Selection:
    """Put a selection together; `selectable` names the fields that records carry, in order."""
    try:
        terms = parse_fields(fields).terms if fields else ()
        matcher = parse_query(labels) if labels else None
    except SelectorError as error:
        raise bad_request(str(error)) from None
    readers = [_reader(term.field, selectable, custom=custom) for term in terms]
    wanted = zip(readers, terms, strict=True)
    return Selection(namespace, matcher, tuple((r, term.value, term.equal) for r, term in wanted))


def _reader(field: str, selectable: Sequence[str], *, custom: bool) -> Reader:
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
