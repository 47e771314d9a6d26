"""Questions about CustomResourceDefinitions and their objects."""

from __future__ import annotations

from typing import Any

from everynode.kube.requests import APPLY_PATCH as A
from everynode.kube.requests import JSON_PATCH
from everynode.kube.requests import MERGE_PATCH as M
from everynode.kube.requests import STRATEGIC_PATCH as S
from tests.agreement.question import DEFINITIONS, TABLE, Object, ask, get, meta

GROUP = "NS.example.test"
WIDGETS = f"/apis/{GROUP}/v1/namespaces/NS/widgets"
OLDER = WIDGETS.replace("/v1/", "/v1beta1/")
SPEC = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 100, "format": "int32"},
        "colour": {"type": "string", "default": "red", "enum": ["red", "blue"]},
        "code": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5, "minLength": 2},
        "parts": {
            "type": "array",
            "maxItems": 3,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string"},
                    "count": {"type": "integer", "default": 1},
                },
            },
        },
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "closed": {"type": "object"},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "either": {"x-kubernetes-int-or-string": True},
        "maybe": {"type": "string", "nullable": True},
        "ratio": {"type": "number"},
        "flag": {"type": "boolean"},
    },
}
STATUS = {"type": "object", "properties": {"phase": {"type": "string"}}}
COLUMNS = [
    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
    {"name": "Colour", "type": "string", "jsonPath": ".spec.colour", "priority": 1},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]


def version(name: str, *, storage: bool = False, **more: Any) -> Object:
    schema = {"type": "object", "properties": {"spec": SPEC, "status": STATUS}}
    return {
        "name": name,
        "served": True,
        "storage": storage,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
        "additionalPrinterColumns": COLUMNS,
        **more,
    }


def definition(plural: str = "widgets", kind: str = "Widget", **more: Any) -> Object:
    return {
        **meta(f"{plural}.{GROUP}"),
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind, "shortNames": ["wd"], "categories": ["all"]},
            "versions": [version("v1", storage=True), version("v1beta1")],
            **more,
        },
    }


def widget(name: str, at: str = "v1", **spec: Any) -> Object:
    whole = {"size": 3, **spec}
    return {"apiVersion": f"{GROUP}/{at}", "kind": "Widget", **meta(name), "spec": whole}


def schema(**more: Any) -> Object:
    return {"schema": {"openAPIV3Schema": {"type": "object", **more}}}


ESTABLISHED = get(
    f"{DEFINITIONS}/widgets.{GROUP}",
    until=("status.conditions.1.status", "True"),
    differs="the real one takes its time",
)
DEFINED = [
    ask("POST", DEFINITIONS, definition(), differs="the real one takes its time"),
    ESTABLISHED,
    get(WIDGETS, until=("kind", "WidgetList"), only="items"),
    get(OLDER, until=("kind", "WidgetList"), only="items"),
    get(f"/apis/{GROUP}"),
    get(f"/apis/{GROUP}/v1", differs="the real one adds a hash of what it stores"),
    ask("POST", DEFINITIONS, definition()),
    *(
        ask("POST", f"{DEFINITIONS}?dryRun=All", body)
        for body in (
            definition("gadgets", "Gadget", scope="Foo"),
            definition("gadgets", "Gadget", group="other.test"),
            definition("gadgets", "Gadget", versions=[version("v1", storage=True, schema=None)]),
            definition("gadgets", "Gadget", names={"plural": "gadgets"}),
        )
    ),
    *(
        ask("POST", f"{DEFINITIONS}?dryRun=All", body, differs="the real one finds more faults")
        for body in (
            definition("gadgets", "Gadget", versions=[]),
            definition("gadgets", "Gadget", versions=[version("v1"), version("v2")]),
            {**meta("nodot"), "spec": {}},
        )
    ),
    ask("POST", WIDGETS, widget("a")),
    ask("POST", WIDGETS, widget("a")),
    ask("POST", OLDER, widget("b", "v1beta1")),
    ask("POST", WIDGETS, widget("c", "v1beta1")),
    ask("POST", WIDGETS, {**meta("c"), "spec": {"size": 3}}),
    ask("POST", WIDGETS, {**widget("c"), "spec": {}}),
    *(
        ask("POST", f"{WIDGETS}?dryRun=All", widget("c", **spec))
        for spec in (
            {"size": 0},
            {"size": 101},
            {"size": "three"},
            {"size": None},
            {"colour": "green"},
            {"colour": None},
            {"code": "A"},
            {"code": "toolong"},
            {"parts": [{"name": "x"}]},
            {"parts": [{"name": "x"}, {"name": "x"}]},
            {"parts": [{"count": 1}]},
            {"parts": [{"name": str(i)} for i in range(4)]},
            {"parts": "text"},
            {"tags": ["a", "a"]},
            {"tags": [1]},
            {"map": {"a": 1}},
            {"map": {"a": "b"}},
            {"free": {"any": {"thing": [1]}}},
            {"either": 5},
            {"either": "5%"},
            {"either": True},
            {"maybe": None},
            {"ratio": 1},
            {"flag": "true"},
            {"odd": 1},
        )
    ),
    ask("POST", WIDGETS, widget("c", size=1.5), differs="the real one speaks of it twice"),
    ask("POST", f"{WIDGETS}?fieldValidation=Strict", widget("c", odd=1)),
    ask("POST", f"{WIDGETS}?fieldValidation=Ignore", widget("c", odd=1)),
    # An object without properties has no fields: what is written there is pruned.
    ask("POST", f"{WIDGETS}?dryRun=All", widget("e", closed={"a": {"b": 1}})),
    ask("POST", f"{WIDGETS}?dryRun=All&fieldValidation=Strict", widget("e", closed={"a": 1})),
    ask("PATCH", f"{WIDGETS}/e?dryRun=All&fieldManager=one", widget("e", closed={"a": 1}), A),
    ask("POST", WIDGETS, {**widget("d"), "status": {"phase": "Sent"}}),
    get(f"{WIDGETS}/b"),
    get(f"{OLDER}/a"),
    get(WIDGETS),
    get(f"{OLDER}?limit=1"),
    get(WIDGETS, accept=TABLE),
    get(f"{WIDGETS}/a?includeObject=Object", accept=TABLE),
    get(f"{WIDGETS}?fieldSelector=metadata.name%3Da"),
    get(f"{WIDGETS}?fieldSelector=spec.size%3D3"),
    get(f"{WIDGETS}?labelSelector=x"),
    ask("PATCH", f"{WIDGETS}/a", {"spec": {"size": 4}}, M),
    ask("PATCH", f"{WIDGETS}/a", {"spec": {"size": 4}}, M),
    ask("PATCH", f"{WIDGETS}/a", {"spec": {"size": None}}, M),
    ask("PATCH", f"{WIDGETS}/a", {"spec": {"odd": 1}}, M),
    ask("PATCH", f"{WIDGETS}/a", {"spec": {"size": 5}}, S),
    ask("PATCH", f"{WIDGETS}/a", [{"op": "replace", "path": "/spec/size", "value": 6}], JSON_PATCH),
    ask("PATCH", f"{WIDGETS}/a", {"status": {"phase": "Main"}}, M),
    ask("PATCH", f"{WIDGETS}/a/status", {"status": {"phase": "Up"}, "spec": {"size": 9}}, M),
    ask(
        "PATCH",
        f"{WIDGETS}/a/status",
        {"status": {"phase": 5}},
        M,
        differs="the real one says `phase in body` for `status.phase in body`",
    ),
    ask("PUT", f"{WIDGETS}/a", widget("a")),
    ask("PUT", f"{WIDGETS}/none", widget("none")),
    get(f"{WIDGETS}/a", keep={"V": "metadata.resourceVersion"}),
    ask("PUT", f"{WIDGETS}/a", {**widget("a", size=8), **meta("a", resourceVersion="<V>")}),
    ask("PATCH", f"{WIDGETS}/s?fieldManager=one", widget("s", parts=[{"name": "p"}]), A),
    ask(
        "PATCH", f"{WIDGETS}/s?fieldManager=two", widget("s", parts=[{"name": "q", "count": 2}]), A
    ),
    ask("PATCH", f"{WIDGETS}/s?fieldManager=two", widget("s", size=9), A),
    ask("PATCH", f"{WIDGETS}/s?fieldManager=one", widget("s"), A),
    ask("PATCH", f"{WIDGETS}/s?fieldManager=one", widget("s", odd=1), A),
    ask("DELETE", f"{WIDGETS}/b", {"propagationPolicy": "Foreground"}),
    ask("PATCH", f"{WIDGETS}/b", {"metadata": {"finalizers": None}}, M),
    ask("DELETE", WIDGETS),
    get(WIDGETS),
    get(f"{WIDGETS}/a/foo"),
]


def of_schema(spec: Any) -> Object:
    """A definition whose objects have a spec of this schema."""
    return definition(
        "gadgets",
        "Gadget",
        versions=[version("v1", storage=True, **schema(properties={"spec": spec}))],
    )


def of_column(**column: Any) -> Object:
    return definition(
        "gadgets",
        "Gadget",
        versions=[version("v1", storage=True, additionalPrinterColumns=[column])],
    )


def named(group: str, **annotations: str) -> Object:
    """A definition for another group than that of the run."""
    made = definition("gadgets", "Gadget", group=group)
    return {**made, **meta(f"gadgets.{group}", annotations=annotations)}


ARRAY = {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}}
FINE = [
    ask("POST", f"{DEFINITIONS}?dryRun=All", of_schema(spec), only="spec")
    for spec in (
        {"type": "object", "properties": None},
        {"type": "object", "allOf": [None]},
        {"type": "object", "allOf": [{"properties": {"a": {"minLength": 1}}}]},
        {"x-kubernetes-int-or-string": True},
        {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        {"type": "string", "pattern": "^(a+)+$"},
    )
]
ODD = [
    ask("POST", f"{DEFINITIONS}?dryRun=All", body)
    for body in (
        *(
            of_schema(spec)
            for spec in (
                {},
                {"type": "foo"},
                {"type": "null"},
                {"type": 5},
                {"type": ["string", "null"]},
                {"$ref": "#/x"},
                {"type": "array"},
                {"type": "array", "items": None},
                {"type": "array", "items": True},
                {"type": "array", "items": [{"type": "string"}]},
                {"type": "array", "items": {"type": 5}},
                {"type": "object", "additionalProperties": "x"},
                {"type": "object", "additionalProperties": {"type": "string", "minLength": "x"}},
                {"type": "object", "properties": {"a": {"type": "string"}}, "uniqueItems": True},
                {
                    "type": "object",
                    "properties": {"a": {"type": "string"}},
                    "additionalProperties": {"type": "string"},
                },
                {"type": "string", "anyOf": [{"type": "string"}]},
                {"type": "string", "not": {"default": "x", "nullable": True}},
                {"x-kubernetes-int-or-string": True, "x-kubernetes-preserve-unknown-fields": True},
                {"type": "object", "x-kubernetes-preserve-unknown-fields": False},
                {"type": "object", "x-kubernetes-embedded-resource": True},
                {"type": "string", "x-kubernetes-map-type": "atomic"},
                {"type": "object", "x-kubernetes-map-type": "odd"},
                {"type": "string", "x-kubernetes-list-type": "set"},
                {**ARRAY, "x-kubernetes-list-type": "odd"},
                {**ARRAY, "x-kubernetes-list-type": "set"},
                {**ARRAY, "x-kubernetes-list-type": "map"},
                {**ARRAY, "x-kubernetes-list-map-keys": ["a"]},
                {**ARRAY, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]},
                {**ARRAY, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["b"]},
                {"type": "integer", "default": "x"},
                {"type": "object", "default": {"a": 1}},
                *(
                    {"type": "string", "pattern": pattern}
                    for pattern in ("(?=a)", "(a", "\\1", "a{2000}", "[", "\\Z", "a**")
                ),
            )
        ),
        of_column(name="a", type="string", jsonPath="spec"),
        of_column(name="a", type="string"),
        of_column(type="string", jsonPath=".a"),
        of_column(name="a", type="odd", jsonPath=".a"),
        of_column(name="a", jsonPath=".a"),
        of_column(name="a", type="string", format="odd", jsonPath=".a"),
        definition("gadgets", "Gad get"),
        definition("gadgets", "Gadget", names={"plural": "gadgets", "kind": "G", "listKind": "G"}),
        definition("gadgets", "Gadget", versions=[version("V1", storage=True)]),
        definition("gadgets", "Gadget", versions=[version("v" + "9" * 5000, storage=True)]),
        definition("gadgets", "Gadget", conversion={"strategy": "X"}),
        definition("gadgets", "Gadget", preserveUnknownFields=True),
        named("apps"),
        named("NS.k8s.io"),
        named("NS.k8s.io", **{"api-approved.kubernetes.io": "nonsense"}),
    )
]
