"""Requests and responses as values, independent of the transport that carries them."""

from __future__ import annotations

from typing import Final

import msgspec

JSON: Final = "application/json"
JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
METADATA: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
APPLY_PATCH: Final = "application/apply-patch+yaml"


class Request(msgspec.Struct, frozen=True, gc=False):
    """One request to an API server."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    content_type: str = JSON
    accept: str = JSON
    timeout: float = 30.0  # seconds the client waits; the server-side `timeout` is in the query


class Response(msgspec.Struct, frozen=True, gc=False):
    """One whole response of an API server."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = {}  # names in lower case

    @property
    def ok(self) -> bool:
        """Whether the request succeeded."""
        return 200 <= self.status < 300
