"""Every decided write to one pod or revision is accepted by a real API server."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import msgspec
import pytest
import pytest_asyncio

from everynode.api import keys
from everynode.api.daemonset import Flavour, LifecycleHook
from everynode.api.objects import ControllerRevision, Pod
from everynode.api.revision_data import encode_revision_data
from everynode.api.versions import decode_daemonset
from everynode.decide.actions import CreateRevision, PatchPod, PatchRevision
from everynode.decide.inplace.update import Done, Wait, maintenance_patch, next_step
from everynode.decide.pods.build import build_pod
from everynode.decide.pods.lifecycle import is_preparing, mark_preparing
from everynode.decide.pods.pull_pod import ImagePull, build_pull_pod
from everynode.decide.revisions.ownership import Claim, adopt_patch, claim, release_patch
from everynode.decide.revisions.target import Revision, choose_target, read_revision
from everynode.localkube.control_plane import ControlPlane, ControlPlaneOptions
from tests.support import kubernetes
from tests.support.samples import NOW, Object, advanced, condition, container_status, revision

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(180)]

REVISIONS = "/apis/apps/v1/namespaces/default/controllerrevisions"
DAEMONSETS = "/apis/apps/v1/namespaces/default/daemonsets"
PODS = "/api/v1/namespaces/default/pods"

TEMPLATE: Object = {
    "metadata": {"labels": {"app": "agent"}, "annotations": {"html": "<a>&b"}},
    "spec": {
        "hostNetwork": False,
        "nodeSelector": {},
        "containers": [
            {
                "name": "agent",
                "image": "nginx:1",
                "args": ["é\u2028<"],
                "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}},
                "livenessProbe": {"grpc": {"port": 1}},
                "env": [
                    {"name": "N", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}
                ],
            },
            {"name": "side", "image": "side"},
        ],
        "volumes": [{"name": "v", "hostPath": {"path": "/x"}}, {"name": "e", "projected": {}}],
    },
}


class Server:
    """A real API server, and what we ask of it."""

    def __init__(self, plane: ControlPlane, session: aiohttp.ClientSession) -> None:
        self.plane, self.session = plane, session
        self.tls = ssl.create_default_context(cafile=str(plane.ca_file))

    async def ask(
        self, method: str, path: str, body: Any = None, *, content: str = "json"
    ) -> tuple[int, bytes]:
        async with self.session.request(
            method,
            f"{self.plane.url}{path}",
            data=None if body is None else msgspec.json.encode(body),
            headers={
                "Content-Type": f"application/{content}",
                "Authorization": f"Bearer {self.plane.token}",
            },
            ssl=self.tls,
        ) as answer:
            return answer.status, await answer.read()

    async def get(self, path: str) -> bytes:
        status, body = await self.ask("GET", path)
        assert status == 200, body
        return body

    async def post(self, path: str, body: Any) -> bytes:
        status, answer = await self.ask("POST", path, body)
        assert status == 201, answer
        return answer

    async def patch(self, action: PatchPod) -> Pod:
        status, body = await self.try_patch(action)
        assert status == 200, body
        return msgspec.json.decode(body, type=Pod)

    async def try_patch(self, action: PatchPod) -> tuple[int, bytes]:
        path = "/".join(part for part in (PODS, action.name, action.subresource) if part)
        content = f"{action.merge}-merge-patch+json"
        return await self.ask("PATCH", path, action.body, content=content)

    async def run_pod(self, name: str) -> Pod:
        """What a kubelet would report of the pod."""
        full = msgspec.json.decode(await self.get(f"{PODS}/{name}"))
        gates = [each["conditionType"] for each in full["spec"].get("readinessGates", [])]
        said = {each["type"]: each["status"] for each in full["status"].get("conditions", [])}
        ready = "True" if all(said.get(kind) == "True" for kind in gates) else "False"
        status = {
            "phase": "Running",
            "conditions": [condition("ContainersReady"), condition("Ready", ready)],
            "containerStatuses": [
                container_status(
                    each["name"],
                    each["image"],
                    containerID=f"containerd://{each['image']}",
                    resources=each["resources"],
                )
                for each in full["spec"]["containers"]
            ],
        }
        code, body = await self.ask(
            "PATCH",
            f"{PODS}/{name}/status",
            {"status": status},
            content="strategic-merge-patch+json",
        )
        assert code == 200, body
        return msgspec.json.decode(body, type=Pod)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[Server]:
    kubernetes.programs()
    # With the native controller at work: what it writes is what ours is compared with.
    async with (
        ControlPlane(ControlPlaneOptions(controllers="*", scheduler=False)) as plane,
        aiohttp.ClientSession() as session,
    ):
        made = Server(plane, session)
        room = {"cpu": "8", "memory": "16Gi", "pods": "110"}
        status = {
            "conditions": [{"type": "Ready", "status": "True"}],
            "capacity": room,
            "allocatable": room,  # a resize beyond it is refused
        }
        await made.post("/api/v1/nodes", {"metadata": {"name": "n1"}, "status": status})
        strict = {"name": "strict", "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}
        await made.post("/api/v1/namespaces", {"metadata": strict})
        yield made


async def first_revision(server: Server) -> ControllerRevision:
    for _ in range(100):
        items = msgspec.json.decode(await server.get(f"{REVISIONS}?labelSelector=app%3Dweb"))[
            "items"
        ]
        if items:
            raw = await server.get(f"{REVISIONS}/{items[0]['metadata']['name']}")
            return msgspec.json.decode(raw, type=ControllerRevision)
        await asyncio.sleep(0.1)
    raise AssertionError("the native controller made no revision")


@pytest.mark.asyncio(loop_scope="module")
async def test_the_native_controllers_revision_is_ours_byte_for_byte(server: Server) -> None:
    labels = {"app": "web"}
    template = {**TEMPLATE, "metadata": {**TEMPLATE["metadata"], "labels": labels}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    await server.post(DAEMONSETS, {"metadata": {"name": "web"}, "spec": spec})
    theirs = await first_revision(server)
    ds = decode_daemonset(await server.get(f"{DAEMONSETS}/web"), flavour=Flavour.NATIVE)
    assert bytes(theirs.data) == encode_revision_data(ds.template, Flavour.NATIVE)

    read = read_revision(theirs, ds.uid)
    assert isinstance(read, Revision)
    choice = choose_target(ds, [read], {read.hash: 1})
    (record,) = choice.actions
    assert isinstance(record, PatchRevision)
    assert record.name == theirs.metadata.name
    status, body = await server.ask(
        "PATCH", f"{REVISIONS}/{record.name}", record.body, content="merge-patch+json"
    )
    assert status == 200, body
    again = read_revision(msgspec.json.decode(body, type=ControllerRevision), ds.uid)
    assert isinstance(again, Revision)
    assert choose_target(ds, [again], {again.hash: 1}).actions == ()


@pytest.mark.asyncio(loop_scope="module")
async def test_a_pod_goes_through_its_life(server: Server) -> None:
    hook = LifecycleHook(labels={"app": "agent"}, mark_not_ready=True)
    ds = advanced(msgspec.json.encode(TEMPLATE), pre_delete=hook)
    ds = msgspec.structs.replace(ds, metadata=_meta())
    (creation,) = choose_target(ds, [], {}).actions
    assert isinstance(creation, CreateRevision)
    stored = await server.post(REVISIONS, creation.body)
    old = read_revision(msgspec.json.decode(stored, type=ControllerRevision), ds.uid)
    assert isinstance(old, Revision)
    assert choose_target(ds, [old], {}).actions == ()

    body = build_pod(ds, old, "n1", by_scheduler=False)
    pod = msgspec.json.decode(await server.post(PODS, body), type=Pod)
    pod = await server.run_pod(pod.name)
    opened = maintenance_patch(pod, now=NOW)
    assert opened is not None
    await server.patch(opened)
    pod = await server.run_pod(pod.name)
    assert available(pod)

    new = msgspec.json.decode(old.template)
    new["metadata"]["labels"]["more"] = "x"
    new["metadata"]["finalizers"] = ["example.io/wait"]
    new["spec"]["containers"][0]["image"] = "nginx:2"
    new["spec"]["containers"][0]["resources"]["limits"]["cpu"] = "2"
    target = revision(msgspec.json.encode(new), "fff")
    first_look = pod
    pod = await update(server, pod, [old, target], target)
    assert pod.metadata.finalizers == ("example.io/wait",)
    assert pod.spec.containers[0].image == "nginx:2"
    assert pod.spec.containers[0].resources.requests["cpu"] == "2"
    pod = await update(server, pod, [old, target], old)
    assert pod.metadata.finalizers == ()
    assert "more" not in pod.metadata.labels
    assert available(pod)

    (stale,) = mark_preparing(first_look, hook, NOW)
    assert (await server.try_patch(stale))[0] == 409
    while marks := mark_preparing(pod, hook, NOW):
        pod = await server.patch(marks[0])
        assert is_preparing(pod)
    assert pod.metadata.labels[keys.LIFECYCLE_STATE] == keys.PREPARING_DELETE

    pod = await server.patch(release_patch(ds, pod))
    assert claim(ds, pod) is Claim.ADOPT
    pod = await server.patch(adopt_patch(ds, pod))
    assert claim(ds, pod) is Claim.OWN

    pull_pod = build_pull_pod(ds, target, "n1", pulls=(ImagePull("nginx:2"),), timeout=60)
    pull_pod["metadata"]["namespace"] = "strict"
    await server.post("/api/v1/namespaces/strict/pods", pull_pod)


async def update(server: Server, pod: Pod, known: list[Revision], target: Revision) -> Pod:
    writes = 0
    for _ in range(20):
        old = next((each for each in known if each.hash == pod.hash), None)
        step = next_step(pod, old, target, now=NOW)
        if isinstance(step, Done):
            assert writes == 4
            return pod
        if isinstance(step, PatchPod):
            await server.patch(step)
            writes += 1
        else:
            assert isinstance(step, Wait), step
        pod = await server.run_pod(pod.name)
    raise AssertionError("no end is in sight")


def available(pod: Pod) -> bool:
    found = pod.condition(keys.READY)
    return found is not None and found.status == "True"


def _meta() -> Any:
    meta = advanced(b"{}").metadata
    uid = "11111111-1111-1111-1111-111111111111"
    return msgspec.structs.replace(meta, namespace="default", uid=uid)
