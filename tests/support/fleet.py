"""Test objects: nodes, pods and plans, and a small simulated cluster that applies decisions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from everynode.api import keys
from everynode.api.daemonset import (
    DaemonSet,
    DaemonSetStatus,
    Flavour,
    LabelSelector,
    UpdateStrategy,
)
from everynode.api.objects import (
    Affinity,
    Condition,
    ContainerState,
    ContainerStatus,
    Node,
    NodeAffinity,
    NodeCondition,
    NodeMeta,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    NodeSpec,
    NodeStatus,
    ObjectMeta,
    Pod,
    PodAnnotations,
    PodMeta,
    PodSpec,
    PodStatus,
    StateRunning,
    StateTerminated,
    StateWaiting,
    Taint,
)
from everynode.decide.actions import CreatePod, DeletePod, PatchPod, PodAction
from everynode.decide.decision import Decision
from everynode.decide.ledger import Ledger
from everynode.decide.node.assessment import Assessment
from everynode.decide.node.evaluate import evaluate_node, target_facts
from everynode.decide.node.steps import to_own_write
from everynode.decide.plan import Plan, make_plan
from everynode.decide.pods.build import build_pod
from everynode.decide.revisions.target import Revision
from everynode.decide.view import NodeView, OwnWrite

NOW = 1_700_000_000.0
OLD, NEW, OLDER = "v1", "v2", "v0"
GPU = Taint("gpu", "true", "NoSchedule")


def at(moment: float) -> datetime:
    return datetime.fromtimestamp(moment, UTC)


def template(image: str = "agent:1", **spec: Any) -> bytes:
    containers = spec.pop("containers", [{"name": "agent", "image": image}])
    made = {"metadata": {"labels": {"app": "agent"}}, "spec": {"containers": containers, **spec}}
    return json.dumps(made).encode()


def revision(hash: str, **spec: Any) -> Revision:
    made = spec.pop("template", None) or template(f"agent:{hash}", **spec)
    return Revision(name=f"agent-{hash}", hash=hash, number=1, template=made, uid=f"rev-{hash}")


def make(
    *,
    strategy: UpdateStrategy | None = None,
    new: Revision | None = None,
    old: Revision | None = None,
    others: Sequence[Revision] = (),
    from_hash: str | None = OLD,
    flavour: Flavour = Flavour.NATIVE,
    **ds: Any,
) -> Plan:
    """Return the plan of an update from v1 to v2."""
    target, before = new or revision(NEW), old or revision(OLD)
    meta = ds.pop("metadata", {})
    made = DaemonSet(
        flavour=flavour,
        metadata=ObjectMeta(
            name="agent", namespace="system", uid="ds", **({"generation": 2} | meta)
        ),
        selector=ds.pop("selector", LabelSelector({"app": "agent"})),
        template=target.template,
        strategy=strategy or UpdateStrategy(),
        **ds,
    )
    return make_plan(made, target, [before, *others, target], from_hash)


def node(
    name: str = "n1", *, ready: str = "True", labels: dict[str, str] | None = None, **spec: Any
) -> Node:
    return Node(
        metadata=NodeMeta(name=name, uid=f"node-{name}", labels=labels or {}),
        spec=NodeSpec(**spec),
        status=NodeStatus((NodeCondition("Ready", ready),)),
    )


def pinned(name: str) -> Affinity:
    field = NodeSelectorRequirement("metadata.name", "In", (name,))
    term = NodeSelectorTerm(match_fields=(field,))
    return Affinity(NodeAffinity(NodeSelector((term,))))


def pod(
    hash: str = OLD,
    *,
    on: str = "n1",
    name: str = "",
    ready: bool = True,
    since: float = NOW - 1000,
    created: float = NOW - 2000,
    phase: str = "Running",
    ended: float | None = None,
    deleting: float | None = None,
    scheduled: bool = True,
    waiting: str = "",
    failures: str = "",
    labels: dict[str, str] | None = None,
    finalizers: tuple[str, ...] = (),
    conditions: tuple[Condition, ...] = (),
) -> Pod:
    """Return a pod that runs and is Ready, except for the given fields."""
    name = name or f"agent-{on}-{hash}"
    finished = phase in ("Failed", "Succeeded")
    if finished or waiting or not scheduled:
        ready = False
    state = ContainerState(running=StateRunning(at(created)))
    if waiting:
        state = ContainerState(waiting=StateWaiting(waiting))
    if finished:
        end = at(ended if ended is not None else NOW - 500)
        state = ContainerState(terminated=StateTerminated(1, "Error", end))
    status = Condition("Ready", "True" if ready else "False", last_transition_time=at(since))
    return Pod(
        metadata=PodMeta(
            name=name,
            namespace="system",
            uid=f"uid-{name}",
            resource_version="1",
            labels={"app": "agent", keys.REVISION_HASH: hash, **(labels or {})},
            annotations=PodAnnotations(failures=failures),
            finalizers=finalizers,
            creation_timestamp=at(created),
            deletion_timestamp=None if deleting is None else at(deleting),
        ),
        spec=PodSpec(node_name=on if scheduled else "", affinity=pinned(on)),
        status=PodStatus(
            phase=phase if scheduled else "Pending",
            conditions=(status, *conditions),
            container_statuses=(ContainerStatus("agent", state=state),) if scheduled else (),
            start_time=at(created) if scheduled else None,
        ),
    )


def see(on: Node | str, *pods: Pod, **more: Any) -> NodeView:
    """Return the view of a node with these pods; a name stands for a plain node."""
    found = node(on) if isinstance(on, str) else on
    return NodeView(found.name, found, pods, **more)


def assess(
    plan: Plan, view: NodeView, *, in_scope: bool = True, now: float = NOW, released: bool = True
) -> Assessment:
    return evaluate_node(plan, view, in_scope=in_scope, now=now, released=released)


def assessment_of(ledger: Ledger, name: str) -> Assessment:
    return next(each for each in ledger.assessments() if each.name == name)


def decide(plan: Plan, views: Iterable[NodeView], *, now: float = NOW, **more: Any) -> Decision:
    return Ledger(plan, views).decide(now, more.pop("status", DaemonSetStatus()), **more)


def brief(actions: Iterable[PodAction]) -> list[str]:
    """Return each action as a short text: verb, node, pod or revision, cause."""
    said = []
    for action in actions:
        if isinstance(action, CreatePod):
            said.append(f"create {action.node} {action.revision} {action.cause}")
        elif isinstance(action, DeletePod):
            said.append(f"delete {action.node} {action.name} {action.cause}")
        else:
            said.append(f"patch {action.node} {action.name} {action.cause}")
    return said


def acts(plan: Plan, *views: NodeView, now: float = NOW, **more: Any) -> list[str]:
    return brief(decide(plan, views, now=now, **more).actions)


def said_of(decision: Decision, kind: str) -> Condition:
    return next(each for each in decision.status.conditions if each.type == kind)


def stands(plan: Plan, view: NodeView) -> tuple[bool, bool, bool]:
    found = target_facts(plan, view)
    return found.holds_target, found.eligibility.should_run, found.selected


# --- A small simulated cluster -----------------------------------------------------------------


class World:
    """Nodes and pods of a simulated cluster.

    Actions are applied at once, and the ledger sees them when `show` is called. Kubelets act when
    the test calls `run` or `settle`.
    """

    def __init__(self, plan: Plan, names: Iterable[str], *, hash: str = OLD) -> None:
        self.plan = plan
        self.now = NOW
        self.nodes: dict[str, Node] = {name: node(name) for name in names}
        self.pods: dict[str, Pod] = {}
        self.unseen: dict[str, list[OwnWrite]] = {}
        self.shown: dict[str, tuple[Pod, ...]] = {}
        self.last_pods: dict[str, Pod] = {}  # of nodes that have none now
        for name in self.nodes:
            body = build_pod(plan.ds, plan.revisions[hash], name)
            made = pod(hash, on=name, labels=body["metadata"]["labels"], since=NOW - 10)
            self.add_pod(as_made(made, body["spec"]))
            self.run(made.uid, ready=True, gates=True)
        self.ledger = Ledger(plan)
        for name in self.nodes:
            self.show(name)

    def add_pod(self, made: Pod) -> None:
        self.pods[made.uid] = made

    def pods_on(self, name: str) -> list[Pod]:
        return [each for each in self.pods.values() if where(each) == name]

    def view(self, name: str) -> NodeView:
        return NodeView(
            name,
            self.nodes.get(name),
            self.shown.get(name, ()),
            last_pod=None if self.shown.get(name) else self.last_pods.get(name),
            writes=tuple(self.unseen.get(name, ())),
        )

    def views(self) -> list[NodeView]:
        names = sorted({*self.nodes, *self.shown})
        return [self.view(name) for name in names if self.nodes.get(name) or self.shown.get(name)]

    def show(self, name: str) -> None:
        """Show the ledger the current pods of a node, as a watch would."""
        self.unseen.pop(name, None)
        for seen in self.shown.get(name, ()):
            self.last_pods[name] = seen
        self.shown[name] = tuple(self.pods_on(name))
        self.tell(name)

    def tell(self, name: str) -> None:
        if name in self.nodes or self.shown.get(name):
            self.ledger.observe(self.view(name))
        else:
            self.shown.pop(name, None)
            self.ledger.forget(name)

    def decide(self, status: DaemonSetStatus | None = None) -> Decision:
        decision = self.ledger.decide(self.now, status or DaemonSetStatus())
        for action in decision.actions:
            self.apply(action)
        for name in sorted({action.node for action in decision.actions}):
            self.tell(name)
        return decision

    def apply(self, action: PodAction) -> None:
        if isinstance(action, CreatePod):
            self._create(action)
        elif isinstance(action, DeletePod):
            self._delete(action)
        else:
            self._patch(action)
        self.unseen.setdefault(action.node, []).append(to_own_write(action))

    def _create(self, action: CreatePod) -> None:
        uid = f"uid-{action.name}"
        assert uid not in self.pods, "two pods of one name"
        labels = action.body["metadata"]["labels"]
        failures = (action.body["metadata"].get("annotations") or {}).get(keys.FAILURES, "")
        made = pod(
            action.revision,
            on=action.node,
            name=action.name,
            scheduled=False,
            created=self.now,
            since=self.now,
            labels=labels,
            failures=failures,
            finalizers=tuple(action.body["metadata"].get("finalizers") or ()),
        )
        self.add_pod(as_made(made, action.body["spec"]))

    def _delete(self, action: DeletePod) -> None:
        found = self.pods.get(action.uid)
        if found is None or found.metadata.resource_version != action.resource_version:
            return  # the precondition fails
        if not found.spec.node_name or found.finished:
            del self.pods[action.uid]
        else:
            meta = msgspec.structs.replace(found.metadata, deletion_timestamp=at(self.now + 30))
            self._put(msgspec.structs.replace(found, metadata=meta))

    def _patch(self, action: PatchPod) -> None:
        found = self.pods.get(action.uid)
        body = action.body
        version = body["metadata"].get("resourceVersion")
        if found is None or version not in (None, found.metadata.resource_version):
            return
        labels = {**found.metadata.labels, **body["metadata"].get("labels", {})}
        noted = body["metadata"].get("annotations", {})
        annotations = msgspec.structs.replace(
            found.metadata.annotations,
            inplace_state=noted.get(keys.INPLACE_STATE, found.metadata.annotations.inplace_state),
        )
        meta = msgspec.structs.replace(found.metadata, labels=labels, annotations=annotations)
        images = {
            each["name"]: each["image"] for each in body.get("spec", {}).get("containers", ())
        }
        spec = msgspec.structs.replace(
            found.spec,
            containers=tuple(
                msgspec.structs.replace(each, image=images.get(each.name, each.image))
                for each in found.spec.containers
            ),
        )
        conditions = {each.type: each for each in found.status.conditions}
        for each in body.get("status", {}).get("conditions", ()):
            conditions[each["type"]] = msgspec.convert(
                {key: value for key, value in each.items() if value is not None}, Condition
            )
        status = msgspec.structs.replace(found.status, conditions=tuple(conditions.values()))
        self._put(msgspec.structs.replace(found, metadata=meta, spec=spec, status=status))

    def _put(self, changed: Pod) -> None:
        version = str(int(changed.metadata.resource_version) + 1)
        meta = msgspec.structs.replace(changed.metadata, resource_version=version)
        self.pods[changed.uid] = msgspec.structs.replace(changed, metadata=meta)

    # Kubelets, the scheduler and other clients.

    def run(self, uid: str, *, ready: bool, gates: bool = False) -> None:
        """Run the pod as a kubelet does and report whether it is Ready, if its gates are open."""
        found = self.pods[uid]
        if found.finished or found.terminating:
            return
        kinds = [each.condition_type for each in found.spec.readiness_gates]
        if gates:
            opened = tuple(Condition(k, "True", last_transition_time=at(NOW - 999)) for k in kinds)
            more = (*found.status.conditions, *opened)
            status = msgspec.structs.replace(found.status, conditions=more)
            found = msgspec.structs.replace(found, status=status)
        said = {each.type: each.status for each in found.status.conditions}
        contained = "True" if ready else "False"
        ready = ready and all(said.get(kind) == "True" for kind in kinds)
        was = is_ready(found)
        since = (
            at(self.now) if was is not ready else found.status.conditions[0].last_transition_time
        )
        told = Condition("Ready", "True" if ready else "False", last_transition_time=since)
        names = ("Ready", keys.CONTAINERS_READY)
        others = tuple(each for each in found.status.conditions if each.type not in names)
        state = ContainerState(running=StateRunning(at(self.now)))
        running = [
            ContainerStatus(each.name, each.image, f"id-{each.image}", state=state)
            for each in found.spec.containers
        ]
        self._put(
            msgspec.structs.replace(
                found,
                spec=msgspec.structs.replace(found.spec, node_name=where(found)),
                status=msgspec.structs.replace(
                    found.status,
                    phase="Running",
                    start_time=found.status.start_time or at(self.now),
                    conditions=(told, Condition(keys.CONTAINERS_READY, contained), *others),
                    container_statuses=tuple(running),
                ),
            )
        )

    def fail(self, uid: str) -> None:
        found = self.pods[uid]
        if not found.spec.node_name or found.finished:
            return
        state = ContainerState(terminated=StateTerminated(1, "Error", at(self.now)))
        self._put(
            msgspec.structs.replace(
                found,
                status=msgspec.structs.replace(
                    found.status,
                    phase="Failed",
                    conditions=(Condition("Ready", "False", last_transition_time=at(self.now)),),
                    container_statuses=(ContainerStatus("agent", state=state),),
                ),
            )
        )

    def end(self, uid: str) -> None:
        """Remove a terminating pod."""
        if self.pods[uid].terminating and not self.pods[uid].metadata.finalizers:
            del self.pods[uid]

    def kill(self, uid: str) -> None:
        """Delete a pod as another client would."""
        found = self.pods[uid]
        meta = msgspec.structs.replace(found.metadata, deletion_timestamp=at(self.now + 30))
        self._put(msgspec.structs.replace(found, metadata=meta))

    def settle(self, *, ready: bool = True, target_ready: bool = True) -> None:
        """Finish everything that is under way, and show it to the ledger."""
        for uid in list(self.pods):
            found = self.pods[uid]
            if found.terminating:
                self.end(uid)
            elif not found.finished:
                self.run(uid, ready=target_ready if self.plan.is_at_target(found) else ready)
        for name in sorted({*self.nodes, *self.shown}):
            self.show(name)


def as_made(made: Pod, spec: dict[str, Any]) -> Pod:
    """Return the pod with the gates and containers of the spec it was created from."""
    read = msgspec.convert(
        {key: spec[key] for key in ("readinessGates", "containers") if key in spec}, PodSpec
    )
    kept = msgspec.structs.replace(
        made.spec, readiness_gates=read.readiness_gates, containers=read.containers
    )
    return msgspec.structs.replace(made, spec=kept)


def where(found: Pod) -> str:
    assert found.spec.affinity is not None
    assert found.spec.affinity.node_affinity is not None
    required = found.spec.affinity.node_affinity.required
    assert required is not None
    return required.node_selector_terms[0].match_fields[0].values[0]


def is_ready(found: Pod) -> bool:
    return any(each.type == "Ready" and each.status == "True" for each in found.status.conditions)
