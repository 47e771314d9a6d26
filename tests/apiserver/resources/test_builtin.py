from __future__ import annotations

from everynode.api import types
from everynode.apiserver.resources.builtin import builtin_kinds


def test_every_built_in_kind_is_in_the_table_of_types() -> None:
    for kind in builtin_kinds():
        assert kind.type_name in types.load(), kind.kind


def test_no_two_kinds_share_an_address() -> None:
    addresses = [(kind.group, kind.version, kind.plural) for kind in builtin_kinds()]
    assert len(addresses) == len({*addresses})
