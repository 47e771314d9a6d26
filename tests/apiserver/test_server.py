from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from everynode.apiserver.server import Server
from everynode.apiserver.storage.sqlite import DataError
from everynode.clock import SystemClock
from tests.apiserver.transport.test_https import serving
from tests.support.api_client import MAPS

# Starts a server on a data folder, writes through HTTPS until it is killed, and prints the name of
# every object whose creation was acknowledged.
WRITER = """
import asyncio, sys
from pathlib import Path
from everynode.clock import SystemClock
from everynode.apiserver.server import Server
from everynode.kube.requests import Request

async def main():
    server = Server(clock=SystemClock(), data=Path(sys.argv[1]))
    await server.start()
    async def write(worker):
        for number in range(100_000):
            name = f"m{worker}-{number}"
            body = b'{"metadata":{"name":"%s"},"data":{"x":"%s"}}' % (name.encode(), b"y" * 200)
            path = "/api/v1/namespaces/default/configmaps"
            response = await server.transport.send(Request("POST", path, body=body))
            assert response.status == 201
            print(name, flush=True)
    await asyncio.gather(*(write(worker) for worker in range(20)))

asyncio.run(main())
"""


async def test_every_acknowledged_write_survives_a_kill(tmp_path: Path) -> None:
    data = tmp_path / "data"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WRITER, str(data), stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    acknowledged = [(await process.stdout.readline()).decode().strip() for _ in range(300)]
    process.kill()
    rest, _ = await process.communicate()
    # The last line may be cut off by the kill.
    acknowledged += [line for line in rest.decode().split("\n")[:-1] if line]

    server = Server(clock=SystemClock(), data=data)
    async with serving(server) as client:
        status, body = await client.ask("GET", MAPS)
    assert status == 200
    kept = {item["metadata"]["name"]: item for item in body["items"]}
    del kept["kube-root-ca.crt"]  # the server's own
    assert [name for name in acknowledged if name not in kept] == []
    assert all(item["data"]["x"] == "y" * 200 for item in kept.values())
    versions = [int(item["metadata"]["resourceVersion"]) for item in body["items"]]
    assert max(versions) <= int(body["metadata"]["resourceVersion"])


async def test_identity_and_objects_outlive_the_server(tmp_path: Path) -> None:
    first = Server(clock=SystemClock(), data=tmp_path)
    async with serving(first) as client:
        await client.ask("POST", MAPS, {"metadata": {"name": "a"}})
    second = Server(clock=SystemClock(), data=tmp_path)
    async with serving(second) as client:
        assert second.identity == first.identity
        assert (await client.ask("GET", f"{MAPS}/a"))[0] == 200


async def test_every_namespace_holds_the_certificate_of_the_server() -> None:
    server = Server(clock=SystemClock())
    async with serving(server) as client:
        await client.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "new"}})
        for namespace in ("default", "new"):
            path = f"/api/v1/namespaces/{namespace}/configmaps/kube-root-ca.crt"
            status, found = await client.ask("GET", path)
            assert (status, found["data"]) == (200, {"ca.crt": server.identity.authority})


async def test_server_says_when_its_folder_breaks(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server(clock=SystemClock(), data=tmp_path)
    waiting = asyncio.create_task(server.broken())
    async with serving(server) as client:
        assert (await client.ask("POST", MAPS, {"metadata": {"name": "a"}}))[0] == 201
        assert not waiting.done()
        server.api.store.fail(DataError("the disk is full"))
        with pytest.raises(DataError, match="the disk is full"):
            await waiting
        assert (await client.ask("GET", MAPS))[0] == 500
    assert caplog.text == ""  # the caller gets the error; a traceback for each request adds nothing


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl on the PATH")
async def test_kubectl_talks_to_it(tmp_path: Path) -> None:
    async def kubectl(*words: str, stdin: str = "") -> str:
        process = await asyncio.create_subprocess_exec(
            "kubectl",
            f"--cache-dir={tmp_path / 'cache'}",
            *words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "KUBECONFIG": str(tmp_path / "config")},
        )
        out, _ = await process.communicate(stdin.encode())
        assert process.returncode == 0, out.decode()
        return out.decode()

    server = Server(clock=SystemClock())
    manifest = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent"},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "template": {
                "metadata": {"labels": {"app": "agent"}},
                "spec": {"containers": [{"name": "c", "image": "agent:1"}]},
            },
        },
    }
    async with serving(server):
        (tmp_path / "config").write_text(json.dumps(server.kubeconfig()))
        text = json.dumps(manifest)
        assert "daemonset.apps/agent created" in await kubectl("apply", "-f", "-", stdin=text)
        assert "daemonset.apps/agent unchanged" in await kubectl("apply", "-f", "-", stdin=text)
        table = await kubectl("get", "daemonset")
        assert table.splitlines()[0].split()[:4] == ["NAME", "DESIRED", "CURRENT", "READY"]
        assert "image updated" in await kubectl("set", "image", "ds/agent", "c=agent:2")
        assert "agent:2" in await kubectl("describe", "ds", "agent")
        assert "serverside-applied" in await kubectl(
            "apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text
        )
        assert "yes" in await kubectl("auth", "can-i", "delete", "nodes")
        assert "updateStrategy" in await kubectl("explain", "ds.spec")
        assert "namespace/team created" in await kubectl("create", "namespace", "team")
        assert "deleted" in await kubectl("delete", "ds", "agent")
