from __future__ import annotations

from everynode.api import types
from everynode.apiserver.request import protobuf_fields

POD_SPEC = "io.k8s.api.core.v1.PodSpec"


def test_every_field_is_one_of_the_table_or_takes_its_fields_from_another() -> None:
    table = types.load()
    for name, fields in protobuf_fields.load().messages.items():
        if name in table and table[name].fields:
            unknown = [f.name for f in fields if f.name and f.name not in table[name].fields]
            assert unknown == [], name


def test_numbers_are_unique_within_a_message() -> None:
    for name, fields in protobuf_fields.load().messages.items():
        numbers = [field.number for field in fields]
        assert len(numbers) == len(set(numbers)), name


def test_optional_scalars_keep_their_zero() -> None:
    table = protobuf_fields.load()
    assert table.keeps_zero(POD_SPEC, "terminationGracePeriodSeconds")
    assert not table.keeps_zero(POD_SPEC, "hostNetwork")
    assert table.keeps_zero("an unknown type", "anything")
