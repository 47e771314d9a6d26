from __future__ import annotations

from everynode.apiserver.resources.registry import Kind, Registry, RenamingConversion


def test_registry_tells_when_it_has_changed() -> None:
    kind = Kind("example.test", "v1", "Widget", "widgets", "widget")
    registry = Registry([])
    before = registry.revision
    registry.add(kind)
    assert registry.find("example.test", "v1", "widgets") is kind
    assert registry.serves("example.test", "v1")
    registry.remove(kind)
    assert not registry.serves("example.test", "v1")
    assert registry.revision > before


def test_kind_knows_its_names() -> None:
    kind = Kind("example.test", "v1", "Widget", "widgets", "widget")
    assert (kind.api_version, kind.storage, kind.list_kind_name) == (
        "example.test/v1",
        "widgets.example.test",
        "WidgetList",
    )
    core = Kind("", "v1", "Pod", "pods", "pod")
    assert (core.api_version, core.storage) == ("v1", "pods")


def test_renamed_version_changes_nothing_but_its_name() -> None:
    conversion = RenamingConversion("g/v1alpha1", "g/v1")
    stored = {"apiVersion": "g/v1", "spec": {"a": 1}}
    shown = conversion.show(stored)
    assert shown == {"apiVersion": "g/v1alpha1", "spec": {"a": 1}}
    assert conversion.store(shown) == stored
