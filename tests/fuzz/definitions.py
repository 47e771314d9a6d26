"""Definitions of custom kinds with schemas drawn at random, and objects that nearly follow them."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Final

from tests.fuzz.generate import Generator, Object
from tests.fuzz.samples import DEFINITIONS, Sample
from tests.fuzz.values import ODD_TEXTS, hostile

GROUP: Final = "fuzz.test"  # the agreement tests define others on the same server
_TYPES: Final = ("object", "array", "string", "integer", "number", "boolean")
_PATTERNS: Final = ("^a*$", "[a-z", "(((", "(?=a)", "\\d+", "\\pL", "(?P<a>b)\\1", "", "a{1000}")
_FORMATS: Final = ("int32", "int64", "date-time", "byte", "uuid", "ipv4", "email", "duration", "x")
_JSON_PATHS: Final = (
    ".metadata.name",
    ".spec.a",
    ".spec[0]",
    ".spec['a']",
    ".spec[?(@.a==1)]",
    "..a",
    ".a[",
    "",
    ".spec[*].a",
    ".a.b.c.d",
    "{.a}",
)
_FIELDS: Final = ("a", "b", "items", "x-y", "metadata")


def definition(draw: Generator, plural: str = "widgets", group: str = GROUP) -> Object:
    """A definition; mostly one that is accepted."""
    random = draw.random
    kind = plural.capitalize().removesuffix("s")
    versions = [
        _version(draw, name, stored=index == 0)
        for index, name in enumerate(random.choice((["v1"], ["v1"], ["v1", "v1beta1"], ["v1"])))
    ]
    # A real server prunes what it reads by the schema of the version that is asked for, the
    # embedded one does not: all versions have the same schema here.
    for each in versions[1:]:
        each["schema"] = deepcopy(versions[0]["schema"])
    obj: Object = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": versions,
        },
    }
    for _ in range(random.choice((0, 0, 0, 1, 2))):
        draw.spoil(obj)
    return obj


def _version(draw: Generator, name: str, *, stored: bool) -> Object:
    random = draw.random
    root: Object = {
        "type": "object",
        "properties": {"spec": schema(draw, 0), "status": {"type": "object"}},
    }
    if random.random() < 0.3:
        root["properties"]["status"] = schema(draw, 1)
    version: Object = {
        "name": name,
        "served": True,
        "storage": stored,
        "schema": {"openAPIV3Schema": root},
    }
    if random.random() < 0.4:
        version["subresources"] = {"status": {}}
        if random.random() < 0.4:
            version["subresources"]["scale"] = {
                "specReplicasPath": random.choice((".spec.a", ".spec.replicas", ".x", "spec")),
                "statusReplicasPath": random.choice((".status.a", ".status", ".")),
            }
    if random.random() < 0.4:
        version["additionalPrinterColumns"] = [
            {
                "name": random.choice(("A", "Age", "")),
                "type": random.choice(("string", "integer", "date", "boolean", "number", "x")),
                "jsonPath": random.choice(_JSON_PATHS),
            }
        ]
    if random.random() < 0.1:
        version["selectableFields"] = [{"jsonPath": random.choice(_JSON_PATHS)}]
    return version


def schema(draw: Generator, depth: int) -> Any:
    """A schema, mostly a structural one."""
    random = draw.random
    if draw.odd():
        return hostile(random)
    sort = "object" if depth == 0 else random.choice(_TYPES)
    if depth > 3 and sort in ("object", "array"):
        sort = "string"
    found: Object = {"type": sort}
    if sort == "object":
        _object_schema(draw, found, depth)
    elif sort == "array":
        found["items"] = schema(draw, depth + 1)
        if random.random() < 0.4:
            found["x-kubernetes-list-type"] = random.choice(("atomic", "set", "map"))
            if random.random() < 0.7:
                found["x-kubernetes-list-map-keys"] = random.choice((["a"], ["a", "b"], ["z"]))
    elif sort == "string":
        _some(draw, found, maxLength=3, minLength=1, pattern=random.choice(_PATTERNS))
        _some(draw, found, format=random.choice(_FORMATS), enum=["a", "b"])
    else:
        _some(draw, found, minimum=1, maximum=10, multipleOf=random.choice((2, 0, 0.5)))
        _some(draw, found, exclusiveMinimum=True, format=random.choice(_FORMATS))
    _some(draw, found, default=draw.free(), nullable=True, description="d")
    if random.random() < 0.05:
        found.pop("type")
        found[
            random.choice(("x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields"))
        ] = True
    if random.random() < 0.08:
        joined = random.choice(("oneOf", "anyOf", "allOf"))
        found[joined] = [{"required": ["a"]}, {"minimum": 1}]
    if random.random() < 0.03:
        found["not"] = {"type": "string"} if random.random() < 0.5 else {"required": ["b"]}
    if draw.odd():
        found[random.choice(("$ref", "x-kubernetes-validations", "properties", *ODD_TEXTS[:3]))] = (
            hostile(random)
        )
    return found


def _object_schema(draw: Generator, found: Object, depth: int) -> None:
    random = draw.random
    if random.random() < 0.2:
        found["additionalProperties"] = random.choice((True, False, schema(draw, depth + 1)))
        return
    names = random.sample(_FIELDS[:4], random.randrange(1, 4))
    found["properties"] = {name: schema(draw, depth + 1) for name in names}
    _some(draw, found, required=random.choice((names[:1], ["z"], [])))
    _some(
        draw, found, **{"x-kubernetes-preserve-unknown-fields": random.choice((True, True, False))}
    )
    _some(draw, found, **{"x-kubernetes-map-type": random.choice(("atomic", "granular", "x"))})
    _some(draw, found, minProperties=1, maxProperties=2)


def _some(draw: Generator, found: Object, **more: Any) -> None:
    """Add each with a chance of one in six."""
    for key, value in more.items():
        if draw.random.random() < 1 / 6:
            found[key] = value


def sample_of(made: Any) -> Sample:
    """Where the objects of a definition are, and one that may be right."""
    spec = made["spec"]
    version = spec["versions"][0]["name"]
    names = spec["names"]
    return Sample(
        spec["group"],
        version,
        names["kind"],
        names["plural"],
        DEFINITIONS.type_name,
        {"spec": {}},
        parts=("status", "scale"),
    )


def custom_object(draw: Generator, made: Any, sample: Sample) -> Object:
    """An object that the schema of a definition nearly allows."""
    obj = sample.example(draw.random.choice(("a", "b")))
    root = made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for key in ("spec", "status"):
        found = root["properties"].get(key)
        if draw.random.random() < 0.8:
            obj[key] = following(draw, found)
    for _ in range(draw.random.choice((0, 0, 1))):
        draw.spoil(obj)
    return obj


def following(draw: Generator, found: Any, depth: int = 0) -> Any:
    """A value by a schema, as far as that is one."""
    random = draw.random
    if not isinstance(found, dict) or draw.odd():
        return hostile(random)
    enum = found.get("enum")
    if isinstance(enum, list) and enum:
        return random.choice(enum)
    sort = found.get("type")
    if sort == "object":
        properties = found.get("properties")
        if isinstance(properties, dict):
            return {
                key: following(draw, each, depth + 1)
                for key, each in properties.items()
                if random.random() < 0.8
            }
        return {key: following(draw, found.get("additionalProperties")) for key in ("a", "b")}
    if sort == "array":
        item = found.get("items")
        return [following(draw, item, depth + 1) for _ in range(random.randrange(3))]
    if sort == "string":
        return random.choice(("a", "b", "ab", ""))
    if sort in ("integer", "number"):
        return random.choice((1, 2, 4, 0, 10, 11))
    return random.random() < 0.5 if sort == "boolean" else draw.free()
