"""Other people's programs can use the embedded cluster: the official Python client, and kopf."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

from everynode.apiserver.server import Server
from everynode.clock import SystemClock
from tests.apiserver.transport.test_https import serving
from tests.support.api_client import definition

OFFICIAL = """
import sys
from kubernetes import client, config, watch

config.load_kube_config(sys.argv[1])
core = client.CoreV1Api()
core.create_namespaced_config_map(
    "default", client.V1ConfigMap(metadata=client.V1ObjectMeta(name="a"), data={"x": "1"})
)
print(core.read_namespaced_config_map("a", "default").data)
core.patch_namespaced_config_map("a", "default", {"data": {"x": "2"}})
mine = {"field_selector": "metadata.name=a"}
print([item.data for item in core.list_namespaced_config_map("default", **mine).items])
stream = watch.Watch().stream(core.list_namespaced_config_map, "default", timeout_seconds=2, **mine)
print([(event["type"], event["object"].metadata.name) for event in stream])
core.delete_namespaced_config_map("a", "default")
try:
    core.read_namespaced_config_map("a", "default")
except client.ApiException as error:
    print(error.status)
"""

OPERATOR = """
import kopf

@kopf.on.create("example.test", "v1", "widgets")
def created(spec, **_):
    print(f"seen size {spec['size']}", flush=True)
    return {"done": True}
"""


async def run(*command: str, environment: dict[str, str], until: str = "") -> str:
    process = await asyncio.create_subprocess_exec(
        *command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, **environment},
    )
    assert process.stdout is not None
    seen = []
    while line := await asyncio.wait_for(process.stdout.readline(), 120):
        seen.append(line.decode())
        if until and until in seen[-1]:
            process.terminate()
            break
    rest, _ = await process.communicate()
    return "".join([*seen, rest.decode()])


async def test_official_client_reads_writes_and_watches(tmp_path: Path) -> None:
    server = Server(clock=SystemClock())
    async with serving(server):
        config = tmp_path / "config"
        config.write_text(json.dumps(server.kubeconfig()))
        said = await run(sys.executable, "-c", OFFICIAL, str(config), environment={})
    assert said.splitlines() == [
        "{'x': '1'}",
        "[{'x': '2'}]",
        "[('ADDED', 'a')]",
        "404",
    ]


async def test_operator_written_with_kopf_sees_its_objects(tmp_path: Path) -> None:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    server = Server(clock=SystemClock())
    async with serving(server) as client:
        (tmp_path / "config").write_text(json.dumps(server.kubeconfig()))
        (tmp_path / "operator.py").write_text(OPERATOR)
        body = definition(schema={"openAPIV3Schema": schema}, subresources={})
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        assert (await client.ask("POST", path, body))[0] == 201
        widgets = "/apis/example.test/v1/namespaces/default/widgets"
        named = {"apiVersion": "example.test/v1", "kind": "Widget"}
        widget = {**named, "metadata": {"name": "w"}, "spec": {"size": 5}}
        assert (await client.ask("POST", widgets, widget))[0] == 201
        said = await run(
            sys.executable,
            "-m",
            "kopf",
            "run",
            "--standalone",
            "--all-namespaces",
            str(tmp_path / "operator.py"),
            environment={"KUBECONFIG": str(tmp_path / "config")},
            until="seen size 5",
        )
    assert "seen size 5" in said
