"""Annotations of nodes and pods that control simulated kubelets (docs/embedded-cluster.md)."""

from __future__ import annotations

from typing import Final

PREFIX: Final = "sim.everynode.io/"

# Of a pod, which its template can carry: see kubelet/behaviour.py.
BEHAVIOUR: Final = f"{PREFIX}behaviour"

# Of a node.
STOPPED: Final = f"{PREFIX}stopped"  # "true": its kubelet is silent
SLOW: Final = f"{PREFIX}slow"  # "5": everything on it takes five times as long
PRESSURE: Final = f"{PREFIX}pressure"  # memory, disk or pid: it reports that and evicts pods
NOT_READY: Final = f"{PREFIX}not-ready"  # "true": its kubelet reports NotReady
BOOT: Final = f"{PREFIX}boot"  # every new value reboots it: its containers end and start again
CLOCK: Final = f"{PREFIX}clock"  # "-60": its clock is a minute behind
# "true": it shuts down gracefully; "unannounced": its kubelet reports nothing of it.
SHUTDOWN: Final = f"{PREFIX}shutdown"
