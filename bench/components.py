"""How fast nodes, pods and bindings come and go in the embedded cluster.

    python -m bench.components [--nodes 5000]

API, kubelets, scheduler and collector share one process and one core, without sockets: the figures
are those of the whole way, from the request that creates a pod to the last status written.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import time
from collections.abc import Callable

import uvloop

from everynode.apiserver.transport.local import LocalTransport
from everynode.apiserver.verbs.dispatch import Api
from everynode.clock import SystemClock
from everynode.components.kubelet.behaviour import Behaviour
from everynode.components.kubelet.registration import node_name
from everynode.components.run import ComponentOptions, Components
from everynode.kube import verbs
from everynode.kube.resources import NODES, PODS

INSTANT = Behaviour(pull=(0.0, 0.0), start=0.0, stop=0.0, events=False)


def pod(name: str, node: str) -> bytes:
    """A small daemon pod, pinned to its node."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    requests = {"requests": {"cpu": "10m", "memory": "16Mi"}}
    container = {"name": "agent", "image": "agent:v1", "resources": requests}
    spec = {
        "containers": [container],
        "affinity": affinity,
        "tolerations": [{"operator": "Exists"}],
    }
    body = {"metadata": {"name": name, "labels": {"app": "agent"}}, "spec": spec}
    return json.dumps(body).encode()


class Stage:
    """Measures one thing after the other."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.began = time.perf_counter()
        self.began_cpu = time.process_time()

    def done(self, what: str) -> None:
        """Print what was done since the last time, and how fast."""
        seconds = time.perf_counter() - self.began
        cpu = time.process_time() - self.began_cpu
        print(
            f"{what:<46} {seconds:7.2f} s {cpu:7.2f} s cpu {self.count / cpu:7.0f} per cpu second"
        )
        self.began, self.began_cpu = time.perf_counter(), time.process_time()


async def until(holds: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    while not holds():  # noqa: ASYNC110  (looking is cheaper than being told each time)
        await asyncio.sleep(0.005)


async def schedule(count: int) -> None:
    """Only the scheduler: every kubelet is stopped."""
    clock = SystemClock()
    api = Api(clock=clock)
    transport = LocalTransport(api)
    names = [node_name(index, count) for index in range(count)]
    stopped = {"sim.everynode.io/stopped": "true"}
    status = {
        "allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    for index, name in enumerate(names):
        node = {"metadata": {"name": name, "annotations": stopped}, "status": status}
        await transport.send(verbs.create(NODES, node))
        body = pod(f"pod-{index}", name)
        await transport.send(verbs.create(PODS, body, namespace="default"))
    components = Components(transport, clock, ComponentOptions(behaviour=INSTANT))
    pods = components.informers.pods
    stage = Stage(count)
    task = asyncio.ensure_future(components.run())
    await components.informers.wait_for_sync()
    await until(lambda: all(each.spec.node_name for each in pods.all().values()))
    stage.done(f"{count} pinned pods bound, watch included")
    task.cancel()
    await asyncio.wait((task,))


async def live(count: int) -> None:
    """Nodes that register, pods that start and end."""
    clock = SystemClock()
    api = Api(clock=clock)
    transport = LocalTransport(api)
    components = Components(transport, clock, ComponentOptions(nodes=count, behaviour=INSTANT))
    pods, nodes = components.informers.pods, components.informers.nodes
    stage = Stage(count)
    task = asyncio.ensure_future(components.run())
    await components.ready()
    await until(lambda: not any(node.spec.taints for node in nodes.all().values()))
    stage.done(f"{count} nodes registered and untainted")
    for index in range(count):
        body = pod(f"pod-{index}", node_name(index, count))
        await transport.send(verbs.create(PODS, body, namespace="default"))

    def ready() -> bool:
        found = (each.condition("Ready") for each in pods.all().values())
        return sum(each is not None and each.status == "True" for each in found) == count

    await until(ready)
    stage.done(f"{count} pods created, bound, started and Ready")
    for index in range(count):
        await transport.send(verbs.delete(PODS, f"pod-{index}", namespace="default"))
    await until(lambda: not len(pods))
    stage.done(f"{count} pods deleted, stopped and gone")
    task.cancel()
    await asyncio.wait((task,))


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the components of the embedded cluster.")
    parser.add_argument("--nodes", type=int, default=5000)
    count = parser.parse_args().nodes
    for measure in (schedule, live):
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(measure(count))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory {peak:.0f} MB")


if __name__ == "__main__":
    main()
