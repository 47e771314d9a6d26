"""The dashboard of `everynode run`: real Kubernetes says who may see what."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from click.testing import CliRunner

from everynode.api.keys import CONTROLLER_NAMESPACE
from everynode.cli.install import command as install_command
from everynode.localkube.control_plane import ControlPlane, ControlPlaneOptions
from tests.browser.chromium import HOW_TO_GET_IT, PROGRAM, chromium
from tests.support import kubernetes
from tests.support.stage import daemonset

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(240)]
ALL = "daemonsets.apps.kruise.io,pods,controllerrevisions.apps,events"
WITHOUT_PODS = "daemonsets.apps.kruise.io,controllerrevisions.apps"


@dataclass(frozen=True, slots=True)
class Cluster:
    """A real API server, and how users type."""

    plane: ControlPlane
    program: Path

    def kubectl(self, *arguments: str, given: Any = None) -> str:
        done = subprocess.run(
            [self.program, "--kubeconfig", self.plane.kubeconfig, *arguments],
            input=None if given is None else json.dumps(given),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def token(self, account: str, namespace: str) -> str:
        return self.kubectl("create", "token", account, "-n", namespace)

    def kubeconfig_with(self, token: str, folder: Path) -> Path:
        config = yaml.safe_load(self.plane.kubeconfig.read_text(encoding="utf-8"))
        config["users"][0]["user"] = {"token": token}
        path = folder / "kubeconfig"
        path.write_text(yaml.safe_dump(config), encoding="utf-8")
        return path


@dataclass(frozen=True, slots=True)
class Page:
    """The served page, and tokens of users by name."""

    address: str
    tokens: dict[str, str]

    async def get(self, path: str, user: str = "", **headers: str) -> tuple[int, Any]:
        if user:
            headers["Authorization"] = f"Bearer {self.tokens.get(user, user)}"
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{self.address}{path}", headers=headers) as answer,
        ):
            if answer.status == 401:
                assert answer.headers["WWW-Authenticate"] == "Bearer"
            if answer.content_type == "text/event-stream":
                return answer.status, (await answer.content.readline()).decode()
            return answer.status, json.loads(await answer.read())


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    programs = kubernetes.programs()
    with kubernetes.running(ControlPlaneOptions(scheduler=False, controllers=None)) as plane:
        yield Cluster(plane, programs / "kubectl")


@pytest.fixture(scope="module")
def page(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A controller with the rights of its own account, a set in each of two namespaces, users."""
    options = ["--dashboard", "--kubeconfig", str(cluster.plane.kubeconfig)]
    result = CliRunner().invoke(install_command, options)
    assert result.exit_code == 0, result.output
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    cluster.kubectl("create", "-f", "-", given=node)
    tokens = {}
    for namespace in ("one", "two"):
        cluster.kubectl("create", "namespace", namespace)
        made = daemonset("agent")
        made["metadata"]["namespace"] = namespace
        cluster.kubectl("create", "-f", "-", given=made)
    for user, rights in (("ada", ALL), ("bob", WITHOUT_PODS), ("eve", "")):
        cluster.kubectl("create", "serviceaccount", user, "-n", "one")
        account = f"--serviceaccount=one:{user}"
        if rights:
            role = ("create", "role", user, "-n", "one", "--verb=get,list")
            cluster.kubectl(*role, f"--resource={rights}")
            cluster.kubectl("create", "rolebinding", user, "-n", "one", f"--role={user}", account)
        if user == "ada":
            viewer = "--clusterrole=everynode-dashboard-viewer"
            cluster.kubectl("create", "clusterrolebinding", user, viewer, account)
        tokens[user] = cluster.token(user, "one")
    own = cluster.token("everynode", CONTROLLER_NAMESPACE)
    kubeconfig = cluster.kubeconfig_with(own, tmp_path_factory.mktemp("own"))
    with _run(kubeconfig) as address:
        yield Page(address, tokens)


@contextmanager
def _run(kubeconfig: Path) -> Iterator[str]:
    """Run a controller with its page; yields the address of the page."""
    options = ["--log-format", "json", "--health-address", "0", "--metrics-address", "0"]
    command = [sys.executable, "-m", "everynode", "run", "--dashboard-address", "127.0.0.1:0"]
    process = subprocess.Popen(
        [*command, "--kubeconfig", str(kubeconfig), *options], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    try:
        said = next((line for line in process.stderr if "Serving the dashboard" in line), "")
        yield str(json.loads(said)["address"])
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)


SET = "api/set/ads/one/agent"


async def test_a_user_with_rights_in_one_namespace_sees_that_one(page: Page) -> None:
    status, listed = await page.get("api/sets", "ada")
    assert (status, [each["namespace"] for each in listed["sets"]]) == (200, ["one"])
    assert listed["actions"] is False
    assert listed["troubles"] == []
    status, shown = await page.get(f"{SET}/nodes", "ada")
    assert (status, [row["node"] for row in shown["rows"]]) == (200, ["n1"])
    status, first = await page.get(f"{SET}/stream", "ada")
    assert (status, first) == (200, "event: snapshot\n")
    status, told = await page.get(f"{SET}/node/n1", "ada")
    assert (status, told["missing"]) == (200, "")
    status, said = await page.get("api/set/ads/two/agent/nodes", "ada")
    assert status == 403
    assert "get daemonsets.apps.kruise.io in namespace two" in said["error"]


@pytest.mark.parametrize("user", ["", "not-a-token", "Basic"])
@pytest.mark.parametrize("path", ["api/sets", "api/sets/stream", f"{SET}/nodes", f"{SET}/stream"])
async def test_without_a_valid_token_is_401(page: Page, user: str, path: str) -> None:
    status, said = await page.get(path, user)
    assert status == 401
    assert "kubectl create token" in said["help"]


async def test_a_missing_right_is_named(page: Page) -> None:
    status, listed = await page.get("api/sets", "bob")
    assert (status, len(listed["sets"])) == (200, 1)
    for path in (f"{SET}/nodes", f"{SET}/stream", f"{SET}/diff?from=1&to=1", f"{SET}/node/n1"):
        status, said = await page.get(path, "bob")
        assert status == 403, path
        assert said["error"].endswith("lacks the right to list pods in namespace one, list nodes")
    for path in ("api/sets", "api/sets/stream"):
        status, said = await page.get(path, "eve")
        assert status == 403, path
        assert "list daemonsets.apps.kruise.io" in said["help"]


async def test_another_host_or_page_is_refused_whatever_its_token(page: Page) -> None:
    for headers in ({"Host": "everynode.example"}, {"Origin": "http://evil.example"}):
        status, said = await page.get("api/sets", "ada", **headers)
        assert (status, bool(said["help"])) == (403, True)
    status, _ = await page.get("api/sets", "ada", Host="localhost:1234")  # a port-forward
    assert status == 200


@pytest.mark.skipif(
    not PROGRAM and not os.environ.get("EVERYNODE_REQUIRE_BROWSER"), reason=HOW_TO_GET_IT
)
async def test_a_user_signs_in_and_sees_their_namespace(page: Page, tmp_path: Path) -> None:
    give = "document.querySelector('.token input').value = '{}';"
    send = "document.querySelector('.token').requestSubmit()"
    async with chromium(tmp_path) as tab:
        await tab.open(page.address)
        for token, then in (
            ("wrong", "document.body.innerText.includes('not valid')"),
            (page.tokens["ada"], "document.querySelectorAll('.set-line').length === 1"),
        ):
            await tab.wait("document.querySelector('.token')")
            await tab.run(give.format(token) + send)
            await tab.wait(then)
        assert "one" in await tab.run("document.querySelector('.set-line').innerText")
        await tab.run("document.querySelector('.set-line').click()")
        await tab.wait("document.querySelector('.tile')")
        assert [url for url in tab.requests if page.tokens["ada"] in url] == []
