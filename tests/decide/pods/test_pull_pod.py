from __future__ import annotations

from typing import Any

from everynode.api import keys
from everynode.api.daemonset import LabelSelector
from everynode.decide.pods.build import OWN_SCHEDULER
from everynode.decide.pods.pull_pod import COMMAND, ImagePull, build_pull_pod, pull_pod_name
from everynode.decide.revisions.ownership import Claim, claim
from tests.support.samples import advanced, read_pod, revision, template


def built(**spec: Any) -> dict[str, Any]:
    made = template(**spec)
    pulls = (ImagePull("x:2"), ImagePull("y:3", "Always"))
    return build_pull_pod(advanced(made), revision(made, "new"), "n1", pulls=pulls, timeout=60)


def test_a_pull_pod_pulls_each_image_and_runs_nothing() -> None:
    first, second = built()["spec"]["containers"]
    assert (first["image"], first["imagePullPolicy"]) == ("x:2", "IfNotPresent")
    assert (second["image"], second["imagePullPolicy"]) == ("y:3", "Always")
    assert first["command"] == second["command"] == [COMMAND]
    assert first["name"] != second["name"]


def test_a_pull_pod_is_short_lived_and_small() -> None:
    spec = built()["spec"]
    assert spec["restartPolicy"] == "Never"
    assert spec["activeDeadlineSeconds"] == 60
    assert spec["automountServiceAccountToken"] is False
    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "1m", "memory": "1Mi"}


def test_a_pull_pod_is_pinned_and_tolerates_what_the_daemon_pod_does() -> None:
    mine = {"key": "mine", "operator": "Exists"}
    spec = built(tolerations=[mine], hostNetwork=True)["spec"]
    (term,) = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    assert term["matchFields"][0]["values"] == ["n1"]
    assert spec["tolerations"][0] == mine
    assert len(spec["tolerations"]) == 8
    assert spec["hostNetwork"] is True


def test_a_pull_pod_names_the_pull_secrets_of_the_template() -> None:
    spec = built(imagePullSecrets=[{"name": "s"}], serviceAccountName="sa")["spec"]
    assert spec["imagePullSecrets"] == [{"name": "s"}]
    assert spec["serviceAccountName"] == "sa"
    assert "priorityClassName" not in built(priorityClassName="high")["spec"]


def test_a_pull_pod_passes_the_strictest_pod_security() -> None:
    spec = built()["spec"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert spec["containers"][0]["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_a_windows_pull_pod_has_no_linux_security_context() -> None:
    spec = built(os={"name": "windows"})["spec"]
    assert spec["os"] == {"name": "windows"}
    assert "securityContext" not in spec
    assert "securityContext" not in spec["containers"][0]


def test_a_pull_pod_is_deleted_with_its_daemonset_and_is_no_daemon_pod() -> None:
    body = built()
    (owner,) = body["metadata"]["ownerReferences"]
    assert owner["uid"] == "ds-uid"
    assert owner["controller"] is False
    assert body["metadata"]["labels"] == {keys.PULL_POD_OWNER: "ds-uid"}
    by_pull_pod_label = LabelSelector({keys.PULL_POD_OWNER: "ds-uid"})
    assert claim(advanced(template(), selector=by_pull_pod_label), read_pod(body)) is Claim.IGNORE


def test_each_node_and_revision_has_its_own_pull_pod() -> None:
    ds = advanced(template())
    names = {pull_pod_name(ds, n, r) for n in ("n1", "n2") for r in ("a", "b")}
    assert len(names) == 4
    assert all(name.startswith("agent-pull-") and len(name) <= 63 for name in names)


def test_parts_of_the_wrong_type_are_left_out() -> None:
    spec = built(tolerations="all", os="windows", hostNetwork="yes")["spec"]
    assert len(spec["tolerations"]) == 6


def test_a_pull_pod_is_bound_by_its_node_name_where_no_scheduler_is_to_do_it() -> None:
    ds, pulls = advanced(template()), (ImagePull("agent:2"),)
    made = build_pull_pod(
        ds, revision(template()), "n1", pulls=pulls, timeout=60, by_scheduler=False
    )
    assert (made["spec"]["nodeName"], made["spec"]["schedulerName"]) == ("n1", OWN_SCHEDULER)
