"""A real API server for the tests that let it judge."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from typing import Any, NamedTuple

import pytest

from everynode.cli.kubernetes.controlplane import ControlPlane

Object = dict[str, Any]


class Answer(NamedTuple):
    """What the API server said."""

    code: int
    body: Object

    @property
    def causes(self) -> set[tuple[str, str, str]]:
        """Field, reason and message of everything that is wrong."""
        causes = self.body.get("details", {}).get("causes", [])
        return {
            (cause["field"], cause["reason"], cause["message"])
            for cause in causes
            if not cause["message"].endswith("correct the existing errors to complete validation")
        }


class Judge:
    """Asks the API server, as the administrator."""

    def __init__(self, url: str, token: str, context: ssl.SSLContext) -> None:
        self._url, self._context = url, context
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def ask(self, method: str, path: str, body: Object | None = None) -> Answer:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self._url + path, data=data, headers=self._headers, method=method
        )
        try:
            with urllib.request.urlopen(request, context=self._context, timeout=30) as response:
                return Answer(response.status, json.load(response))
        except urllib.error.HTTPError as error:
            with error:
                text = error.read()
            # A path that is not served yet is answered in plain words.
            told = json.loads(text) if text.startswith(b"{") else {"message": text.decode()}
            return Answer(error.code, told)

    def try_out(self, manifest: Object) -> Answer:
        """What creating this would lead to; nothing is kept."""
        return self.ask("POST", f"{collection(manifest)}?dryRun=All", manifest)


def collection(manifest: Object) -> str:
    """Where objects like this one are created."""
    if manifest["kind"] == "Pod":
        return "/api/v1/namespaces/default/pods"
    return f"/apis/{manifest['apiVersion']}/namespaces/default/daemonsets"


@pytest.fixture(scope="session")
def judge(api_server: ControlPlane) -> Judge:
    """The real API server, as one that is asked."""
    return Judge(api_server.url, api_server.token, api_server.ssl_context())
