"""Client of a real API server with the administrator's token."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any, NamedTuple

from everynode.kube.requests import JSON
from everynode.localkube.control_plane import ControlPlane

Object = dict[str, Any]


class Answer(NamedTuple):
    """Status code and body of a response."""

    code: int
    body: Object

    @property
    def causes(self) -> set[tuple[str, str, str]]:
        """Field, reason and message of every validation error."""
        causes = self.body.get("details", {}).get("causes", [])
        return {
            (cause["field"], cause["reason"], cause["message"])
            for cause in causes
            if not cause["message"].endswith("correct the existing errors to complete validation")
        }


class RealApiServer:
    """Sends requests to the API server."""

    def __init__(self, plane: ControlPlane) -> None:
        self._url, self._token, self._context = plane.url, plane.token, plane.ssl_context()

    def ask(self, method: str, path: str, body: Any = None, media: str = JSON) -> Answer:
        """Send a request with an object or a literal text as its body."""
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        request = urllib.request.Request(
            self._url + path,
            data=None if body is None else data,
            headers={"Authorization": f"Bearer {self._token}", "Content-Type": media},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, context=self._context, timeout=120) as response:
                return Answer(response.status, json.load(response))
        except urllib.error.HTTPError as error:
            with error:
                text = error.read()
            # The response for a path that is not served yet is plain text.
            told = json.loads(text) if text.startswith(b"{") else {"message": text.decode()}
            return Answer(error.code, told)

    def try_out(self, manifest: Object) -> Answer:
        """Create the object with a dry run."""
        return self.ask("POST", f"{collection(manifest)}?dryRun=All", manifest)


def collection(manifest: Object) -> str:
    """The path to which objects of this kind are POSTed."""
    kind, version = manifest["kind"], manifest["apiVersion"]
    prefix = "/apis" if "/" in version else "/api"
    within = "" if kind in ("Node", "ClusterRole") else "/namespaces/default"
    return f"{prefix}/{version}{within}/{kind.lower()}s"
