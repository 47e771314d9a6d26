"""Two hundred LISTs of another account at a time cost the controller neither Lease nor pods."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiohttp
import click
import msgspec
import pytest

from everynode.clock import SystemClock
from everynode.kube.requests import MERGE_PATCH
from everynode.localkube.control_plane import ControlPlane, ControlPlaneOptions
from everynode.localkube.control_plane_config import kubeconfig_text
from tests.support import kubernetes
from tests.support.commands import everynode

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(180)]

HOME: Final = "everynode-system"
LEASE: Final = f"/apis/coordination.k8s.io/v1/namespaces/{HOME}/leases/everynode"
RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
AT_A_TIME: Final = 200
EACH: Final = 50  # requests of a client at most, so that the load ends by itself
# A small server: 60 requests at a time, of which all service accounts together get 24.
SMALL: Final = ("--max-requests-inflight=40", "--max-mutating-requests-inflight=20")
TEMPLATE: Final = {
    "metadata": {"labels": {"app": "agent"}},
    "spec": {"containers": [{"name": "agent", "image": "agent:v1"}]},
}
AGENT: Final = {
    "apiVersion": "apps.kruise.io/v1beta1",
    "kind": "DaemonSet",
    "metadata": {"name": "agent"},
    "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": TEMPLATE},
}


@dataclass(frozen=True)
class Api:
    """An API server as one account sees it."""

    plane: ControlPlane
    session: aiohttp.ClientSession
    token: str

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        """Send a request; return the code and the body."""
        headers = {"Authorization": f"Bearer {self.token}"}
        if method == "PATCH":
            headers["Content-Type"] = MERGE_PATCH
        url = self.plane.url + path
        async with self.session.request(method, url, json=body, headers=headers) as answer:
            return answer.status, await answer.read()

    async def json(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        code, text = await self.ask(method, path, body)
        assert code < 300, text
        made: dict[str, Any] = msgspec.json.decode(text)
        return made

    async def sign_in(self, namespace: str, account: str) -> Api:
        """Return the server as a service account sees it."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        made = await self.json("POST", path, {"kind": "TokenRequest"})
        return Api(self.plane, self.session, made["status"]["token"])

    async def add_node(self, name: str) -> None:
        """Create a node; here is no controller that takes off the taint of a new one."""
        status = {"conditions": [{"type": "Ready", "status": "True"}]}
        await self.json("POST", "/api/v1/nodes", {"metadata": {"name": name}, "status": status})
        await self.json("PATCH", f"/api/v1/nodes/{name}", {"spec": {"taints": None}})

    async def until_pods(self, count: int) -> None:
        """Wait until that many pods of the set are there; nothing runs them."""
        path = "/api/v1/namespaces/default/pods?labelSelector=app%3Dagent"
        while len((await self.json("GET", path))["items"]) != count:
            await SystemClock().sleep(0.05)

    async def until_renewed(self, times: int) -> dict[str, Any]:
        """Wait until the Lease has been renewed that many times, and return it."""
        seen: dict[str, Any] = {}
        while len(seen) <= times:
            code, text = await self.ask("GET", LEASE)
            if code == 200:
                lease = msgspec.json.decode(text)["spec"]
                seen[lease["renewTime"]] = lease
            await SystemClock().sleep(0.05)
        last: dict[str, Any] = [*seen.values()][-1]
        return last

    async def handled(self) -> Counter[str]:
        """Return how many requests the server has handled by each FlowSchema."""
        text = (await self.ask("GET", "/metrics"))[1].decode()
        line = r'^apiserver_flowcontrol_dispatched_requests_total\{flow_schema="([^"]+)".*\} (\S+)$'
        found: Counter[str] = Counter()
        for schema, number in re.findall(line, text, re.MULTILINE):
            found[schema] += int(float(number))
        return found


@dataclass
class Load:
    """What the other account does, as long as it goes on."""

    answers: Counter[int]
    under_way: int = 0
    ended: bool = False

    async def client(self, api: Api, all_busy: asyncio.Event) -> None:
        """List again and again."""
        for _ in range(EACH):
            if self.ended:
                break
            self.under_way += 1
            if self.under_way == AT_A_TIME:
                all_busy.set()
            code, _ = await api.ask("GET", "/api/v1/namespaces/default/configmaps")
            self.under_way -= 1
            self.answers[code] += 1


@asynccontextmanager
async def load(api: Api) -> AsyncIterator[Load]:
    """Keep two hundred LISTs under way while the context lasts."""
    made, all_busy = Load(Counter()), asyncio.Event()
    async with asyncio.TaskGroup() as clients:
        for _ in range(AT_A_TIME):
            clients.create_task(made.client(api, all_busy))
        await all_busy.wait()
        yield made
        made.ended = True


@asynccontextmanager
async def served() -> AsyncIterator[Api]:
    """A real API server that has everything of ours, as its administrator sees it."""
    kubernetes.programs()
    flags = {"kube-apiserver": SMALL}
    options = ControlPlaneOptions(controllers=None, scheduler=False, extra_flags=flags)
    async with ControlPlane(options) as plane:
        connections = aiohttp.TCPConnector(ssl=plane.ssl_context(), limit=AT_A_TIME + 10)
        async with aiohttp.ClientSession(connector=connections) as session:
            done = await asyncio.to_thread(
                everynode, "install", "--kubeconfig", str(plane.kubeconfig)
            )
            assert done.returncode == 0, done.stderr
            yield Api(plane, session, plane.token)


async def prepare_another_account(admin: Api) -> Api:
    """Make an account that may list, and enough to list: half a megabyte."""
    await admin.json(
        "POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "noisy"}}
    )
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}
    await admin.json(
        "POST", f"{RBAC}/clusterroles", {"metadata": {"name": "noisy"}, "rules": [rule]}
    )
    subject = {"kind": "ServiceAccount", "name": "noisy", "namespace": "default"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "noisy"}
    binding = {"metadata": {"name": "noisy"}, "subjects": [subject], "roleRef": role}
    await admin.json("POST", f"{RBAC}/clusterrolebindings", binding)
    for number in range(100):
        body = {"metadata": {"name": f"much-{number}"}, "data": {"text": "x" * 5000}}
        await admin.json("POST", "/api/v1/namespaces/default/configmaps", body)
    return await admin.sign_in("default", "noisy")


def start(*line: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(line, stderr=subprocess.PIPE)


async def test_the_lead_is_kept_and_a_new_node_gets_its_pod(tmp_path: Path) -> None:
    async with served() as admin:
        noisy = await prepare_another_account(admin)
        ours = await admin.sign_in(HOME, "everynode")
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(kubeconfig_text(admin.plane.url, admin.plane.ca_file, ours.token))
        for number in range(3):
            await admin.add_node(f"node-{number}")
        await admin.json(
            "POST", "/apis/apps.kruise.io/v1beta1/namespaces/default/daemonsets", AGENT
        )

        line = [sys.executable, "-m", "everynode", "run", "--kubeconfig", str(kubeconfig)]
        line += ["--lease-namespace", HOME, "--health-address", "0", "--metrics-address", "0"]
        with start(*line, "--log-level", "error") as process:
            try:
                await admin.until_pods(3)
                before = await admin.until_renewed(1)
                async with load(noisy) as under_load:
                    began = SystemClock().monotonic()
                    await admin.add_node("late")
                    await admin.until_pods(4)
                    took = SystemClock().monotonic() - began
                    after = await admin.until_renewed(2)
                handled = await admin.handled()
            finally:
                process.terminate()
                errors = process.communicate(timeout=60)[1]
    click.echo(f"the pod took {took:.1f} s; answers to LISTs: {dict(under_load.answers)}")
    assert errors == b""
    assert {*under_load.answers} <= {200, 429}
    assert handled["service-accounts"] >= AT_A_TIME  # at the level where ours would be, too
    assert handled["everynode"] > 0
    assert handled["everynode-leader-election"] > 0
    assert under_load.answers[200] > 0
    assert after["holderIdentity"] == before["holderIdentity"]
    assert after["leaseTransitions"] == before["leaseTransitions"]
