"""In-place kubelet: simulates one pod, its API server and its kubelet for in-place updates."""

from __future__ import annotations

from typing import Any

import msgspec

from everynode.api import keys
from everynode.api.objects import Pod
from everynode.decide.actions import PatchPod
from tests.support.samples import NOW, Object, condition, container_status, pod_json, read_pod


class Machine:
    """A pod built from a template; preconditions are checked before a patch is applied."""

    def __init__(self, template: bytes, hash: str) -> None:
        made = msgspec.json.decode(template)
        containers = made["spec"]["containers"]
        for each in containers:
            _derive_requests(each)
        self.pod: Object = pod_json(
            hash,
            containers=containers,
            statuses=[_status(each, started=1) for each in containers],
            metadata={"labels": {**made["metadata"]["labels"], keys.REVISION_HASH: hash}},
        )
        self.pod["metadata"]["annotations"] = made["metadata"].get("annotations", {})
        self.starts = 1
        self.now = NOW
        self.writes: list[PatchPod] = []

    def read(self) -> Pod:
        return read_pod(self.pod)

    def apply(self, patch: PatchPod) -> None:
        """Apply the patch as an API server does."""
        meta, body = self.pod["metadata"], patch.body
        assert body["metadata"]["uid"] == meta["uid"]
        assert (
            body["metadata"].get("resourceVersion", meta["resourceVersion"])
            == (meta["resourceVersion"])
        )
        self.writes.append(patch)
        self._check_order(patch)
        if patch.subresource != "resize":
            for kind in ("labels", "annotations"):
                _merge(meta[kind], body["metadata"].get(kind, {}))
        if patch.subresource == "status":
            assert "spec" not in body
            _merge_list(self.pod["status"]["conditions"], body["status"]["conditions"], "type")
        for changed in body.get("spec", {}).get("containers", []):
            allowed = {"name", "resources"} if patch.subresource == "resize" else {"name", "image"}
            assert set(changed) <= allowed
            (live,) = [c for c in self.pod["spec"]["containers"] if c["name"] == changed["name"]]
            if "image" in changed:
                live["image"] = changed["image"]
            for kind, amounts in changed.get("resources", {}).items():
                live["resources"][kind].update(amounts)
        self._bump()

    def _check_order(self, patch: PatchPod) -> None:
        """Check that images change only while the gate is closed, and it opens when they run."""
        images = {each["name"]: each["image"] for each in self.pod["spec"]["containers"]}
        for changed in patch.body.get("spec", {}).get("containers", []):
            if changed.get("image", images[changed["name"]]) != images[changed["name"]]:
                assert not self.is_true(keys.INPLACE_UPDATE_READY)
        for written in patch.body.get("status", {}).get("conditions", []):
            if written["type"] == keys.INPLACE_UPDATE_READY and written["status"] == "True":
                statuses = self.pod["status"]["containerStatuses"]
                running = {each["name"]: each["image"] for each in statuses}
                assert running == images

    def run(self) -> None:
        """Bring the containers to the spec and report their status, as a kubelet does."""
        statuses = self.pod["status"]["containerStatuses"]
        for live, status in zip(self.pod["spec"]["containers"], statuses, strict=True):
            if status["image"] != live["image"]:
                self.starts += 1
                status.update(_status(live, started=self.starts))
            status["resources"] = msgspec.json.decode(
                msgspec.json.encode(live.get("resources", {}))
            )
        gates = [each["conditionType"] for each in self.pod["spec"]["readinessGates"]]
        ready = "True" if all(self.is_true(kind) for kind in gates) else "False"
        _merge_list(self.pod["status"]["conditions"], [condition("Ready", ready)], "type")
        self._bump()

    def restart(self) -> None:
        """Start the first container again with the image that it runs."""
        self.starts += 1
        status = self.pod["status"]["containerStatuses"][0]
        status["containerID"] = f"containerd://{status['name']}-{self.starts}"
        self._bump()

    def is_true(self, kind: str) -> bool:
        conditions = self.pod["status"]["conditions"]
        return any(each["type"] == kind and each["status"] == "True" for each in conditions)

    def wait(self, length: float) -> None:
        self.now += length

    def _bump(self) -> None:
        meta = self.pod["metadata"]
        meta["resourceVersion"] = str(int(meta["resourceVersion"]) + 1)


def _status(container: Object, *, started: int) -> Object:
    resources = msgspec.json.decode(msgspec.json.encode(container.get("resources", {})))
    made = container_status(container["name"], container["image"], resources=resources)
    return {**made, "containerID": f"containerd://{container['name']}-{started}"}


def _derive_requests(container: Object) -> None:
    resources = container.setdefault("resources", {})
    limits = resources.get("limits", {})
    if limits or "requests" in resources:
        resources["requests"] = {**limits, **resources.get("requests", {})}
        resources.setdefault("limits", {})


def _merge(target: dict[str, Any], patch: dict[str, Any]) -> None:
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        else:
            target[key] = value


def _merge_list(target: list[Object], patch: list[Object], key: str) -> None:
    for each in patch:
        found = next((item for item in target if item[key] == each[key]), None)
        if found is None:
            found = {}
            target.append(found)
        _merge(found, each)
