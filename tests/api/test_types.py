from __future__ import annotations

from everynode.api import types


def test_a_kind_is_found_by_group_version_and_kind() -> None:
    assert types.type_for("apps", "v1", "DaemonSet") == "io.k8s.api.apps.v1.DaemonSet"
    assert types.type_for("", "v1", "Pod") == types.POD
    assert types.type_for("apps", "v1", "Ghost") is None


def test_every_reference_in_the_table_leads_somewhere() -> None:
    table = types.load()
    for info in table.values():
        for field in info.fields.values():
            for part in (field, field.items, field.values):
                if part is not None and part.ref:
                    assert part.ref in table


def test_required_fields_say_so() -> None:
    container = types.load()["io.k8s.api.core.v1.Container"]
    assert container.fields["name"].required
    assert not container.fields["image"].required


def test_lists_know_how_they_are_merged() -> None:
    containers = types.load()["io.k8s.api.core.v1.PodSpec"].fields["containers"]
    assert containers.items is not None
    assert containers.items.ref == "io.k8s.api.core.v1.Container"
    assert containers.patch_merge_key == "name"
    assert containers.list_map_keys == ("name",)


def test_maps_know_the_type_of_their_values() -> None:
    limits = types.load()["io.k8s.api.core.v1.ResourceRequirements"].fields["limits"]
    assert limits.values is not None
    assert limits.values.ref == types.QUANTITY
