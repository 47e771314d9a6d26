"""What Argo CD, Flux and Helm report of the objects that a rollout stores."""

from __future__ import annotations

import asyncio
import json
from asyncio.subprocess import PIPE, STDOUT
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from everynode.api.times import write_time
from everynode.kube import verbs
from everynode.kube.requests import MERGE_PATCH
from everynode.kube.resources import ADVANCED, ADVANCED_V1ALPHA1
from tests.e2e.conftest import Play
from tests.support.gitops import OURS, Object, argocd_health, kstatus, tool
from tests.support.stage import Stage, daemonset

# What each tool says: kstatus (Flux, Helm), Argo CD's own check, and ours for Argo CD. Argo CD's
# own knows no conditions: it sees neither a canary that works nor an update that stands still.
EXPECTED = {
    "born": ("InProgress", "Progressing", "Progressing"),
    "complete": ("Current", "Healthy", "Healthy"),
    "complete, as v1alpha1": ("Current", "Healthy", "Healthy"),
    "a new template": ("InProgress", "Progressing", "Progressing"),
    "a canary that works": ("Current", "Progressing", "Suspended"),
    "a canary by percent": ("Current", "error", "Suspended"),
    "a broken canary": ("InProgress", "Progressing", "Progressing"),
    "paused": ("Current", "Suspended", "Suspended"),
    "resumed and complete": ("Current", "Healthy", "Healthy"),
    "a bad image": ("InProgress", "Progressing", "Progressing"),
    "a bad image, for long": ("Failed", "Progressing", "Degraded"),
    "mended": ("Current", "Healthy", "Healthy"),
    "to be updated by hand": ("Current", "Progressing", "Healthy"),
}


@pytest.mark.kubernetes
async def test_deployment_tools_report_every_stage_of_a_rollout_correctly(play: Play) -> None:
    builtin = tool("argocd").read_text(encoding="utf-8")
    ours = (OURS / "health.lua").read_text(encoding="utf-8")
    async with play(nodes=3) as stage:
        seen = await rollout(stage)
    reported = {
        name: (status, argocd_health(builtin, each), argocd_health(ours, each))
        for (name, each), status in zip(seen.items(), kstatus([*seen.values()]), strict=True)
    }
    assert reported == EXPECTED


async def rollout(stage: Stage) -> dict[str, Object]:
    """Play a rollout with everything that can happen to it; return what was stored, by name."""
    manifest = daemonset()
    seen = {"born": await stage.create(manifest)}
    await stage.until_complete(manifest)
    seen["complete"] = await stored(stage)
    seen["complete, as v1alpha1"] = await stage.get(ADVANCED_V1ALPHA1, "agent")

    await stage.set_rolling(manifest, partition=2)
    await settle(stage, manifest, "Complete")
    await stage.stop_controller()
    await stage.set_image(manifest, "agent:v2")
    seen["a new template"] = await stored(stage)
    stage.start_controller()
    await settle(stage, manifest, "Held")
    seen["a canary that works"] = await stored(stage)
    await stage.set_rolling(manifest, partition="70%")
    await settle(stage, manifest, "Held")
    seen["a canary by percent"] = await stored(stage)
    await stage.set_rolling(manifest, partition=2)
    await stage.set_image(manifest, "agent:non-existent")
    await settle(stage, manifest, "Waiting")
    seen["a broken canary"] = await stored(stage)
    await stage.set_image(manifest, "agent:v2")
    await settle(stage, manifest, "Held")

    await stage.set_rolling(manifest, partition=0, paused=True)
    await settle(stage, manifest, "Paused")
    seen["paused"] = await stored(stage)
    await stage.set_rolling(manifest, paused=False)
    await settle(stage, manifest, "Complete")
    seen["resumed and complete"] = await stored(stage)

    await stage.set_image(manifest, "agent:non-existent")
    await settle(stage, manifest, "Waiting")
    seen["a bad image"] = await stored(stage)
    await let_time_pass(stage)
    await settle(stage, manifest, "Stalled")
    seen["a bad image, for long"] = await stored(stage)
    await stage.set_image(manifest, "agent:v3")
    await settle(stage, manifest, "Complete")
    seen["mended"] = await stored(stage)

    await stage.change(manifest, updateStrategy={"type": "OnDelete"})
    await stage.set_image(manifest, "agent:v4")
    await settle(stage, manifest, "OnDelete")
    seen["to be updated by hand"] = await stored(stage)
    return seen


async def stored(stage: Stage) -> Object:
    return await stage.get(ADVANCED, "agent")


async def settle(stage: Stage, manifest: Object, state: str) -> None:
    """Wait until the newest generation is in this state."""

    def there() -> bool:
        ready = stage.condition(manifest, "Ready")
        return stage.observed(manifest) and ready is not None and ready.reason == state

    await stage.until(there, f"it is {state}")


async def let_time_pass(stage: Stage) -> None:
    """Make the stored conditions ten minutes older, as if nothing had moved since then."""
    conditions: list[dict[str, Any]] = (await stored(stage))["status"]["conditions"]
    for each in conditions:
        moment = datetime.fromisoformat(each["lastTransitionTime"]) - timedelta(minutes=10)
        each["lastTransitionTime"] = write_time(moment)
    body = {"status": {"conditions": conditions}}
    request = verbs.patch(
        ADVANCED,
        "agent",
        body,
        kind=MERGE_PATCH,
        namespace=stage.namespace,
        subresource="status",
    )
    await stage.client.write(request, bytes)


@pytest.mark.kubernetes
async def test_helm_waits_until_a_rollout_is_complete_and_fails_on_a_bad_image(
    play: Play, tmp_path: Path
) -> None:
    manifest = daemonset()
    async with play(nodes=3) as stage:
        assert stage.serve is not None
        helm = Helm(await stage.serve(tmp_path), stage.namespace, make_chart(tmp_path, manifest))
        assert await helm.upgrade("agent:v1") == 0
        await helm.upgrade("agent:v2")
        # Helm returned: nothing is awaited here.
        assert (await stored(stage))["status"]["updatedNumberScheduled"] == 3
        assert conditions_of(await stored(stage))["Complete"] == "True"
        failing = asyncio.create_task(helm.upgrade("agent:non-existent"))
        await settle(stage, manifest, "Waiting")
        assert not failing.done()
        await let_time_pass(stage)
        assert await failing != 0


class Helm:
    """Helm 4 and one release, of a chart with a value `image`."""

    def __init__(self, kubeconfig: str, namespace: str, chart: Path) -> None:
        self._line = [str(tool("helm")), "--kubeconfig", kubeconfig, "-n", namespace]
        self._line += ["upgrade", "--install", "agent", str(chart), "--wait", "--timeout", "2m"]

    async def upgrade(self, image: str) -> int:
        """Upgrade to this image and wait; return the exit code."""
        started = await asyncio.create_subprocess_exec(
            *self._line, "--set", f"image={image}", stdout=PIPE, stderr=STDOUT
        )
        try:
            await started.communicate()
        finally:
            if started.returncode is None:
                started.kill()
        assert started.returncode is not None
        return started.returncode


def make_chart(folder: Path, manifest: Object) -> Path:
    """Write a chart of one DaemonSet."""
    chart = folder / "chart"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: agent\nversion: 1.0.0\n")
    image = manifest["spec"]["template"]["spec"]["containers"][0]["image"]
    text = json.dumps(manifest).replace(json.dumps(image), '"{{ .Values.image }}"')
    (chart / "templates" / "daemonset.yaml").write_text(text)
    return chart


def conditions_of(obj: Object) -> dict[str, str]:
    return {each["type"]: each["status"] for each in obj["status"]["conditions"]}
