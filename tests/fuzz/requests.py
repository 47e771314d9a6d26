"""Requests drawn at random: what is asked of a server, one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode

from everynode.kube.requests import (
    APPLY_PATCH,
    JSON,
    JSON_PATCH,
    MERGE_PATCH,
    METADATA,
    STRATEGIC_PATCH,
)
from tests.fuzz import definitions, samples
from tests.fuzz.generate import Generator
from tests.fuzz.protobuf import encode_object
from tests.fuzz.samples import Sample
from tests.fuzz.values import ODD_TEXTS, encode, hostile

PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
_SHOWN: Final = 1500
YAML: Final = "application/yaml"
TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"
_ACCEPTS: Final = (
    TABLE,
    METADATA,
    PROTOBUF,
    "*/*",
    "",
    "text/html",
    "application/json;as=x",
    "a;b",
)
_JUNK: Final = (
    b"\xff",
    b"\xc3\x28",
    b"\xed\xa0\x80",
    b"\x00",
    b"{",
    b"]",
    b'"',
    b",",
    b"\\",
    b"//",
)
_SELECTORS: Final = (
    "a=b",
    "a!=b",
    "a in (b,c)",
    "a notin (b)",
    "!a",
    "a",
    "a>1",
    "a=",
    "=",
    "a in (",
    "a in ()",
    ",",
    "metadata.name=a",
    "spec.nodeName=",
    "status.phase=Running",
    "metadata.name in (a)",
    "x" * 300,
)
_QUERIES: Final[dict[str, tuple[str, ...]]] = {
    "resourceVersion": ("0", "1", "", "99999999", "-1", "a", "9" * 30, "9" * 5000, "1.5", "٣"),
    "resourceVersionMatch": ("Exact", "NotOlderThan", "x", ""),
    "limit": ("1", "0", "-1", "a", "9" * 25, "2"),
    "continue": ("a", "", "e30", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0", "%%"),
    "labelSelector": _SELECTORS,
    "fieldSelector": _SELECTORS,
    "timeoutSeconds": ("1", "0", "-1", "a", "9" * 30, "1.5"),
    "timeout": ("1s", "1ms", "0", "-1s", "x", "9" * 400 + "h", "1e3s", "1h1m"),
    "dryRun": ("All", "", "None", "all"),
    "fieldManager": ("me", "", "x" * 200, "\x00", "é"),
    "fieldValidation": ("Strict", "Warn", "Ignore", "x"),
    "force": ("true", "false", "", "1", "x"),
    "pretty": ("true", "x"),
    "gracePeriodSeconds": ("0", "1", "-1", "a", "9" * 25),
    "propagationPolicy": ("Orphan", "Background", "Foreground", "x"),
    "orphanDependents": ("true", "x"),
    "watch": ("0", "x", "false"),
    "allowWatchBookmarks": ("true", "x"),
    "sendInitialEvents": ("true", "false", "x"),
    "includeObject": ("None", "Object", "Metadata", "x"),
}


@dataclass(frozen=True)
class DrawnRequest:
    """One request; `watch` says that its answer is a stream."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    content_type: str = JSON
    accept: str = JSON
    watch: bool = False

    @property
    def url(self) -> str:
        """The path with its query, as it is sent."""
        query = urlencode(self.query, errors="surrogatepass")
        return f"{self.path}?{query}" if query else self.path

    def __str__(self) -> str:
        body = f" {self.content_type} {_short(repr(self.body))}" if self.body else ""
        accept = f" accept {self.accept}" if self.accept != JSON else ""
        return f"{self.method} {_short(self.url)}{accept}{body}"


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"


class Requests:
    """Draws whole conversations about one kind."""

    def __init__(self, draw: Generator, *, namespace: str = "default") -> None:
        self.draw = draw
        self.random = draw.random
        self._namespace = namespace

    def about(self, sample: Sample, count: int) -> list[DrawnRequest]:
        """Create an object, then do all sorts of things with it."""
        name = self.random.choice(("a", "b"))
        first = self._create(sample, sample.example(name))
        return [first, *(self.one(sample, name) for _ in range(count))]

    def one(self, sample: Sample, name: str) -> DrawnRequest:
        """Any request about a kind."""
        if not sample.lists:
            return self._create(sample, self.draw.whole(sample))
        sort = self.random.choice(
            (
                "create",
                "create",
                "update",
                "patch",
                "patch",
                "patch",
                "patch",
                "part",
                "read",
                "delete",
            )
        )
        if self.draw.odd():
            name = self.draw.name()
        match sort:
            case "create":
                return self._create(sample, self.draw.whole(sample))
            case "update":
                obj = self.draw.whole(sample, name)
                return self._send("PUT", sample, f"/{_quoted(name)}", obj)
            case "patch":
                return self.patch(sample, name, f"/{_quoted(name)}")
            case "part" if sample.parts:
                return self._part(sample, name)
            case "delete":
                return self._delete(sample, name)
        return self._read(sample, name)

    def about_definitions(self, count: int) -> list[DrawnRequest]:
        """A definition, and objects of its kind."""
        made = definitions.definition(self.draw)
        asked = [self._create(samples.DEFINITIONS, made)]
        for _ in range(count):
            if self.random.random() < 0.2:
                changed = definitions.definition(self.draw)
                where = f"/widgets.{definitions.GROUP}"
                asked.append(
                    self._send("PUT", samples.DEFINITIONS, where, changed)
                    if self.random.random() < 0.5
                    else self.patch(samples.DEFINITIONS, f"widgets.{definitions.GROUP}", where)
                )
                continue
            try:
                sample = definitions.sample_of(made)
                sample.collection()
                obj = definitions.custom_object(self.draw, made, sample)
            except (KeyError, TypeError, IndexError, AttributeError):
                break  # the definition is too damaged to say what its objects are like
            sort = self.random.randrange(4)
            if sort == 0:
                asked.append(self._read(sample, "a"))
            elif sort == 1:
                asked.append(self._patch_with(sample, "/a", obj))
            elif sort == 2:
                asked.append(self._send("PUT", sample, "/a", obj))
            else:
                asked.append(self._create(sample, obj))
        return asked

    # --- Single requests -----------------------------------------------------------------------

    def _where(self, sample: Sample, rest: str = "") -> str:
        return sample.collection(self._namespace) + rest

    def _query(self, *likely: str) -> tuple[tuple[str, str], ...]:
        if self.random.random() < 0.7:
            return ()
        names = likely if likely and self.random.random() < 0.8 else tuple(_QUERIES)
        chosen = self.random.sample(names, self.random.randrange(1, min(3, len(names)) + 1))
        return tuple((name, self.random.choice(_QUERIES[name])) for name in chosen)

    def _accept(self) -> str:
        return self.random.choice(_ACCEPTS) if self.random.random() < 0.1 else JSON

    def _create(self, sample: Sample, obj: Any) -> DrawnRequest:
        return self._send("POST", sample, "", obj)

    def _send(self, method: str, sample: Sample, rest: str, obj: Any) -> DrawnRequest:
        body, kind = self._body(obj, sample)
        query = self._query("dryRun", "fieldManager", "fieldValidation", "timeout")
        return DrawnRequest(method, self._where(sample, rest), query, body, kind, self._accept())

    def _body(self, obj: Any, sample: Sample) -> tuple[bytes, str]:
        sort = self.random.randrange(10)
        if sort == 0 and sample.type_name.startswith("io.k8s.api.") and isinstance(obj, dict):
            return self.damage(encode_object(obj, sample.type_name), 0.5), PROTOBUF
        body = self.damage(encode(obj), 0.06)
        if sort == 1:
            return body, YAML
        if self.draw.odd():
            return body, self.random.choice(("", "text/plain", "application/json;charset=x", "x/y"))
        return body, JSON

    def damage(self, body: bytes, chance: float) -> bytes:
        """The body, at times cut, doubled or with bytes that do not belong there."""
        if self.random.random() >= chance or not body:
            return body
        at = self.random.randrange(len(body))
        sort = self.random.randrange(4)
        if sort == 0:
            return body[:at]
        if sort == 1:
            return body[:at] + self.random.choice(_JUNK) + body[at:]
        if sort == 2:
            return body[:at] + bytes([self.random.randrange(256)]) + body[at + 1 :]
        size = self.random.randrange(1, 20)
        return body[: at + size] + body[at:]

    def patch(self, sample: Sample, name: str, rest: str) -> DrawnRequest:
        """A patch of any kind."""
        kind = self.random.choice((JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH))
        match kind:
            case "application/json-patch+json":
                value = self.draw.json_patch(sample)
            case "application/merge-patch+json":
                value = self.draw.merge_patch(sample)
            case "application/strategic-merge-patch+json":
                value = self.draw.strategic_patch(sample)
            case _:
                value = self.draw.applied(sample, name)
        if kind != JSON_PATCH and isinstance(value, dict) and self.random.random() < 0.06:
            meta = value.setdefault("metadata", {})
            if isinstance(meta, dict):
                meta["managedFields"] = self.draw.managed_fields()
        return self._patch_as(sample, rest, value, kind)

    def _patch_with(self, sample: Sample, rest: str, obj: Any) -> DrawnRequest:
        kind = self.random.choice((MERGE_PATCH, APPLY_PATCH))
        return self._patch_as(sample, rest, obj, kind)

    def _patch_as(self, sample: Sample, rest: str, value: Any, kind: str) -> DrawnRequest:
        query = self._query("dryRun", "fieldManager", "fieldValidation", "force")
        if kind == APPLY_PATCH and not self.draw.odd():
            query = (("fieldManager", "me"), *(pair for pair in query if pair[0] != "fieldManager"))
        if self.draw.odd():
            kind = self.random.choice(("", JSON, "x/y"))
        body = self.damage(encode(value), 0.04)
        return DrawnRequest("PATCH", self._where(sample, rest), query, body, kind, self._accept())

    def _part(self, sample: Sample, name: str) -> DrawnRequest:
        part = self.random.choice(sample.parts)
        rest = f"/{_quoted(name)}/{part}"
        method = self.random.choice(("GET", "PUT", "PUT", "PATCH", "PATCH", "POST"))
        if part in ("binding", "eviction"):
            method = "POST"
        if method == "PATCH":
            return self.patch(sample, name, rest)
        if method == "GET":
            return DrawnRequest(
                "GET", self._where(sample, rest), self._query(), accept=self._accept()
            )
        return self._send(method, sample, rest, self._part_body(sample, part, name))

    def _part_body(self, sample: Sample, part: str, name: str) -> Any:
        meta = {"name": name}
        bodies: dict[str, Any] = {
            "binding": {"metadata": meta, "target": {"kind": "Node", "name": "n1"}},
            "eviction": {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta},
            "scale": {"metadata": meta, "spec": {"replicas": self.random.choice((0, 3, -1))}},
        }
        obj = bodies.get(part) or self.draw.whole(sample, name)
        if part in bodies and self.random.random() < 0.4:
            self.draw.spoil(obj)
        return obj

    def _read(self, sample: Sample, name: str) -> DrawnRequest:
        sort = self.random.randrange(4)
        if sort == 0:
            where = self._where(sample, f"/{_quoted(name)}")
            return DrawnRequest("GET", where, self._query("resourceVersion"), accept=self._accept())
        likely = (
            "resourceVersion",
            "resourceVersionMatch",
            "limit",
            "continue",
            "labelSelector",
            "fieldSelector",
            "timeoutSeconds",
        )
        if sort == 1:
            more = ("sendInitialEvents", "allowWatchBookmarks")
            query = (("watch", "true"), *self._query(*likely, *more))
            return DrawnRequest(
                "GET", self._where(sample), query, accept=self._accept(), watch=True
            )
        return DrawnRequest("GET", self._where(sample), self._query(*likely), accept=self._accept())

    def _delete(self, sample: Sample, name: str) -> DrawnRequest:
        body = b""
        if self.random.random() < 0.5:
            options: dict[str, Any] = {
                "kind": "DeleteOptions",
                "apiVersion": "v1",
                "gracePeriodSeconds": self.random.choice((0, 1, 30)),
                "propagationPolicy": self.random.choice(("Background", "Orphan", "Foreground")),
                "preconditions": {"uid": self.random.choice(("x", None, ""))},
            }
            options.pop(self.random.choice((*options, "x")), None)
            if self.random.random() < 0.4:
                self.draw.spoil(options)
            body = self.damage(encode(hostile(self.random) if self.draw.odd() else options), 0.1)
        query = self._query("gracePeriodSeconds", "propagationPolicy", "dryRun", "orphanDependents")
        rest = "" if self.random.random() < 0.1 else f"/{_quoted(name)}"
        return DrawnRequest("DELETE", self._where(sample, rest), query, body, JSON, self._accept())


def _quoted(name: str) -> str:
    """A name as it stands in a path; in-process paths are not decoded any further."""
    return quote(name or "-", safe="é*$() {}%\n", errors="surrogatepass")


def junk(draw: Generator) -> DrawnRequest:
    """A request that leads anywhere."""
    random = draw.random
    words = (
        "api",
        "v1",
        "apis",
        "apps",
        "pods",
        "namespaces",
        "default",
        "",
        "a",
        "status",
        "openapi",
        "v2",
        "v3",
    )
    path = "/" + "/".join(random.choice(words) for _ in range(random.randrange(1, 8)))
    method = random.choice(("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "FOO"))
    query = ((random.choice(ODD_TEXTS), random.choice(ODD_TEXTS)),) if draw.odd() else ()
    return DrawnRequest(method, path, query, random.choice((b"", b"{}", b"[]", b"null", b"\xff")))
