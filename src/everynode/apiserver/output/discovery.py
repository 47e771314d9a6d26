"""Discovery: API groups, versions and resources, aggregated and one by one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from everynode.api import types
from everynode.apiserver.output.openapi import Documents, v2_document
from everynode.apiserver.request.accept import Accept
from everynode.apiserver.resources.registry import Kind, Registry, Subresource
from everynode.kube.requests import Response

Object = dict[str, Any]

# The answers are modelled on this release of kube-apiserver.
_MAJOR, _MINOR, _ = types.KUBERNETES.removeprefix("v").split(".")
VERSION: Final = {
    "major": _MAJOR,
    "minor": _MINOR,
    "emulationMajor": _MAJOR,
    "emulationMinor": _MINOR,
    "minCompatibilityMajor": _MAJOR,
    "minCompatibilityMinor": str(int(_MINOR) - 1),
    "gitVersion": f"{types.KUBERNETES}+everynode",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "everynode",
    "platform": "linux/amd64",
}
_JSON: Final = {"content-type": "application/json"}
_AGGREGATED_VERSIONS: Final = ("v2",)


class Discovery:
    """Answers discovery and OpenAPI requests; documents are made when they are first read."""

    def __init__(self, kinds: Registry) -> None:
        self._kinds = kinds
        self._documents = Documents([])
        self._revision = -1

    def answer(self, path: str, accept: str) -> Response | None:
        """Return the answer, None for other paths."""
        found = answer(path, accept, self._kinds)
        if found is not None or not path.startswith("/openapi/"):
            return found
        if self._revision != self._kinds.revision:
            self._revision = self._kinds.revision
            self._documents = Documents(list(self._kinds))
        if path == "/openapi/v2":
            media, body = v2_document(accept)
            return Response(200, body, {"content-type": media})
        if path == "/openapi/v3":
            return _json_response(self._documents.index())
        document = self._documents.document(path.removeprefix("/openapi/v3/"))
        return None if document is None else Response(200, document, _JSON)


def answer(path: str, accept: str, kinds: Registry) -> Response | None:
    """Return versions, groups or resources; None for other paths."""
    match path.removeprefix("/").removesuffix("/").split("/"):
        case [""]:
            return _json_response({"paths": _paths(kinds)})
        case ["version"]:
            return _json_response(VERSION)
        case ["api"]:
            return _aggregated_response(accept, kinds, core=True) or _json_response(
                _core_versions()
            )
        case ["apis"]:
            return _aggregated_response(accept, kinds, core=False) or _json_response(_groups(kinds))
        case ["api", version]:
            return _resources(kinds, "", version)
        case ["apis", group]:
            found = [each for each in _groups(kinds)["groups"] if each["name"] == group]
            return (
                _json_response({"kind": "APIGroup", "apiVersion": "v1", **found[0]})
                if found
                else None
            )
        case ["apis", group, version]:
            return _resources(kinds, group, version)
    return None


def _paths(kinds: Registry) -> list[str]:
    groups = versions_of(kinds)
    found = ["/api", "/api/v1", "/apis", "/healthz", "/livez", "/openapi/v3", "/readyz", "/version"]
    found += [f"/apis/{group}" for group in groups if group]
    found += [f"/apis/{g}/{version}" for g, versions in groups.items() if g for version in versions]
    return sorted(found)


def _json_response(body: Object) -> Response:
    return Response(200, msgspec.json.encode(body), _JSON)


def _core_versions() -> Object:
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def versions_of(kinds: Iterable[Kind]) -> dict[str, dict[str, list[Kind]]]:
    """Group kinds by group and version, in the order of registration."""
    found: dict[str, dict[str, list[Kind]]] = {}
    for kind in kinds:
        found.setdefault(kind.group, {}).setdefault(kind.version, []).append(kind)
    return found


def _groups(kinds: Registry) -> Object:
    groups = []
    for group, versions in versions_of(kinds).items():
        if group:
            listed = [{"groupVersion": f"{group}/{name}", "version": name} for name in versions]
            groups.append({"name": group, "versions": listed, "preferredVersion": listed[0]})
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def _resources(kinds: Registry, group: str, version: str) -> Response | None:
    served = versions_of(kinds).get(group, {}).get(version)
    if not served:
        return None
    resources: list[Object] = []
    for kind in sorted(served, key=lambda kind: kind.plural):
        resources.append(_resource(kind))
        resources += [_subresource(kind, part) for part in kind.subresources]
    group_version = f"{group}/{version}" if group else version
    return _json_response(
        {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": group_version,
            "resources": resources,
        }
    )


def _resource(kind: Kind) -> Object:
    entry: Object = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        entry["shortNames"] = list(kind.short_names)
    if kind.categories:
        entry["categories"] = list(kind.categories)
    return entry


def _subresource(kind: Kind, part: Subresource) -> Object:
    entry: Object = {
        "name": f"{kind.plural}/{part.name}",
        "singularName": "",
        "namespaced": kind.namespaced,
        "kind": part.kind,
        "verbs": list(part.verbs),
    }
    if part.group:
        entry |= {"group": part.group, "version": part.version}
    return entry


def _aggregated_response(accept: str, kinds: Registry, *, core: bool) -> Response | None:
    """Return aggregated discovery if the client accepts it."""
    version = Accept(accept).preferred_version("APIGroupDiscoveryList", _AGGREGATED_VERSIONS)
    if version is None:
        return None
    items = [
        {
            "metadata": {"name": group} if group else {},
            "versions": [_aggregated_version(name, served) for name, served in versions.items()],
        }
        for group, versions in versions_of(kinds).items()
        if (group == "") is core
    ]
    body = {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": items,
    }
    media = f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
    return Response(200, msgspec.json.encode(body), {"content-type": media})


def _aggregated_version(version: str, kinds: list[Kind]) -> Object:
    resources = []
    for kind in sorted(kinds, key=lambda kind: kind.plural):
        entry: Object = {
            "resource": kind.plural,
            "responseKind": _response_kind(kind, kind.kind),
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "singularResource": kind.singular,
            "verbs": list(kind.verbs),
        }
        if kind.short_names:
            entry["shortNames"] = list(kind.short_names)
        if kind.categories:
            entry["categories"] = list(kind.categories)
        if kind.subresources:
            entry["subresources"] = [
                _aggregated_subresource(kind, part) for part in kind.subresources
            ]
        resources.append(entry)
    return {"version": version, "resources": resources, "freshness": "Current"}


def _response_kind(kind: Kind, name: str) -> Object:
    """Return the responseKind; built-in kinds leave group and version empty."""
    group, version = (kind.group, kind.version) if kind.custom else ("", "")
    return {"group": group, "version": version, "kind": name}


def _aggregated_subresource(kind: Kind, part: Subresource) -> Object:
    return {
        "subresource": part.name,
        "responseKind": _response_kind(kind, part.kind)
        if not part.group
        else {"group": part.group, "version": part.version, "kind": part.kind},
        "verbs": list(part.verbs),
    }
