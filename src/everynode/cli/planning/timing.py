"""Timing of a plan: durations of the set's pods, or of options, as simulated kubelets take them."""

from __future__ import annotations

from typing import Any

import msgspec

from everynode.api.daemonset import DaemonSet
from everynode.api.objects import Pod
from everynode.cli.terminal.text import parse_duration
from everynode.decide.fleet.budget import resolve_limits
from everynode.forecast.durations import Duration, Durations, estimate_durations
from everynode.kube.watch.decode import Decoder
from everynode.sim.plans.plan import Timing

Object = dict[str, Any]

_GRACE = 30.0  # Kubernetes' default
_decode_pod = Decoder(Pod).one


def read_durations(
    live: DaemonSet | None, pods: tuple[bytes, ...], given: dict[str, str]
) -> Durations:
    """Return how long the pods of the DaemonSet took; options take precedence over them."""
    at_once, ready, grace = 0, 0, _GRACE
    if live is not None:
        limits = resolve_limits(live.strategy, live.status.desired)
        at_once = 0 if limits.max_surge else limits.max_unavailable
        ready = live.min_ready_seconds
        pod = msgspec.json.decode(live.template, type=Object).get("spec") or {}
        grace = float(pod.get("terminationGracePeriodSeconds") or _GRACE)
    found = estimate_durations(
        [_decode_pod(body) for body in pods],
        at_once=at_once,
        min_ready_seconds=ready,
        grace=grace,
    )
    options = {
        name: Duration(parse_duration(f"--{name}", text), f"given with --{name}")
        for name, text in given.items()
        if text
    }
    return msgspec.structs.replace(found, **options)


def simulated_timing(durations: Durations, live: Object | None, new: Object) -> Timing:
    """Return the durations as the simulated kubelets take them.

    These add the delays of probes and start init containers one after the other, both of which the
    durations of real pods include.
    """
    delay = _probe_delay(live or new) if durations.start.measured else 0.0
    return Timing(
        pull=0.0,
        start=durations.pull.seconds / (1 + len(_pod(new).get("initContainers") or ())),
        ready=max(0.0, durations.start.seconds - delay),
        stop=durations.stop.seconds,
    )


def _probe_delay(ds: Object) -> float:
    """Return the longest wait of a container for its first probes."""
    return max(
        (
            sum(
                float((container.get(probe) or {}).get("initialDelaySeconds") or 0)
                for probe in ("startupProbe", "readinessProbe")
            )
            for container in _pod(ds).get("containers") or ()
        ),
        default=0.0,
    )


def _pod(ds: Object) -> Object:
    found: Object = ds["spec"]["template"].get("spec") or {}
    return found
