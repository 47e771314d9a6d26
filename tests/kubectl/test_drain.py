"""`kubectl drain` of a node with an Advanced pod: its exact text, and what comes of the pod."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.kubectl_session import Terminal

pytestmark = pytest.mark.timeout(900)
NODE = "node-0002"
SET = "daemonsets.apps.kruise.io/agent"
ON_NODE = f"--field-selector spec.nodeName={NODE}"
DRAIN = f"kubectl drain {NODE} --ignore-daemonsets --timeout=120s"
# kubectl up to 1.31 looks for a native DaemonSet of that name; newer ones check the API group.
OLD = """\
node/NODE cordoned
error: unable to drain node "NODE" due to error:cannot delete daemonsets.apps "agent" not found: SPACE/POD, continuing command...
There are pending nodes to be drained:
 NODE
cannot delete daemonsets.apps "agent" not found: SPACE/POD
"""  # noqa: E501 - as it is printed
EVICTED = """\
node/NODE cordoned
evicting pod SPACE/POD
pod/POD evicted
node/NODE drained
"""
SKIPPED = """\
node/NODE already cordoned
node/NODE drained
"""


class Session:
    """A namespace with an Advanced DaemonSet of five pods."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self.is_old = "1.28" in str(terminal.kubectl)
        cluster = terminal.kubeconfig.parent.name
        self.space = f"drain-{cluster}-{'old' if self.is_old else 'new'}"
        self.type(f"kubectl create namespace {self.space}")
        self.type("kubectl apply -f agent.yaml")
        self.type(f"kubectl wait {SET} --for=condition=Complete --timeout=120s")

    def type(self, line: str, code: int = 0) -> str:
        typed = self._terminal.type(line, self.space)
        assert typed.code == code, str(typed)
        return typed.output

    def pods(self) -> list[dict[str, Any]]:
        found: dict[str, Any] = json.loads(self.type(f"kubectl get pods {ON_NODE} -o json"))
        return list(found["items"])

    def printed(self, text: str, pod: str) -> str:
        return text.replace("NODE", NODE).replace("SPACE", self.space).replace("POD", pod)

    def settled(self) -> dict[str, Any]:
        """The one pod on the node, once all five are Ready."""
        self.type(f"kubectl wait {SET} --for=condition=Complete --timeout=120s")
        [pod] = self.pods()
        return pod


def play(session: Session) -> None:
    pod = session.settled()
    meta, name = pod["metadata"], pod["metadata"]["name"]
    assert meta["annotations"]["cluster-autoscaler.kubernetes.io/daemonset-pod"] == "true"
    if session.is_old:
        assert session.type(DRAIN, code=1) == session.printed(OLD, name)
        assert session.settled()["metadata"]["uid"] == meta["uid"]
        forced = session.type(f"{DRAIN} --force")
        assert forced == session.printed(EVICTED.replace(" cordoned", " already cordoned"), name)
    else:
        assert session.type(DRAIN) == session.printed(EVICTED, name)
    again = session.settled()["metadata"]
    assert again["uid"] != meta["uid"]
    revision = "controller-revision-hash"
    assert again["labels"][revision] == meta["labels"][revision]
    skipped = session.type(f"{DRAIN} --pod-selector='app!=agent'")
    assert skipped == session.printed(SKIPPED, name)
    assert session.settled()["metadata"]["uid"] == again["uid"]
    session.type(f"kubectl uncordon {NODE}")
    session.type(f"kubectl delete {SET} --cascade=foreground")
    session.type("kubectl wait pod --all --for=delete --timeout=120s")


def test_an_evicted_pod_comes_back_once_at_its_revision(terminal: Terminal) -> None:
    play(Session(terminal))


@pytest.mark.kubernetes
def test_drain_prints_the_same_on_real_kubernetes(terminal: Terminal, kubernetes: Path) -> None:
    play(Session(Terminal(terminal.kubectl, kubernetes, terminal.home)))
