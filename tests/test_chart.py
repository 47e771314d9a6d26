"""The Helm chart installs what `everynode install` does, and refuses what it does not know."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any, Final

import click
import pytest
import yaml

import everynode
from everynode.cli.run import command as run_command
from everynode.install import InstallOptions, install_objects
from tests.support.helm import CHART, HELMS, WITHOUT_CLUSTER, render, run_helm
from tests.support.paths import ROOT
from tests.test_prometheus_rules import RULES, bad_image

Object = dict[str, Any]
IMAGE: Final = f"everynode:{everynode.__version__}"
# Labels that charts add by convention.
OF_HELM: Final = ("app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "helm.sh/chart")
DASHBOARD: Final = ROOT / "deploy" / "grafana" / "everynode.json"
MONITORS: Final = {"serviceMonitor", "podMonitor", "prometheusRule", "dashboard"}
ALL: Final = [f"metrics.{name}.enabled=true" for name in sorted(MONITORS)]


def named(objects: list[Object]) -> dict[tuple[str, str], Object]:
    return {(each["kind"], each["metadata"]["name"]): each for each in objects}


def meant(given: Object) -> Object:
    """Return an object without what only a chart adds."""
    metadata = dict(given["metadata"])
    metadata["labels"] = {k: v for k, v in metadata["labels"].items() if k not in OF_HELM}
    if metadata.get("annotations") == {"helm.sh/resource-policy": "keep"}:
        del metadata["annotations"]
    return {**given, "metadata": metadata}


def test_the_generated_files_are_current() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "hack" / "chart", "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_chart_has_the_version_of_everynode() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert chart["version"] == chart["appVersion"] == everynode.__version__


@pytest.mark.parametrize("helm", HELMS)
@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("dashboard", [False, True])
def test_a_release_is_what_install_applies(helm: str, native: bool, dashboard: bool) -> None:
    values = f"native={str(native).lower()}", f"dashboard.enabled={str(dashboard).lower()}"
    rendered = [
        each
        for each in render(helm, *values)
        if "helm.sh/hook" not in each["metadata"].get("annotations", {})
    ]
    applied = install_objects(InstallOptions(image=IMAGE, native=native, dashboard=dashboard))
    # Helm needs the namespace before there is a release: --create-namespace makes it.
    wanted = [each for each in applied if each["kind"] != "Namespace"]
    assert {key: meant(each) for key, each in named(rendered).items()} == named(wanted)
    assert len(rendered) == len(wanted)


@pytest.mark.parametrize("helm", HELMS)
def test_the_chart_has_no_faults(helm: str) -> None:
    for values in ([], ALL):
        given = [word for value in values for word in ("--set", value)]
        done = run_helm(helm, "lint", "--strict", str(CHART), *WITHOUT_CLUSTER, *given)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("helm", HELMS)
@pytest.mark.parametrize(
    "wrong",
    [
        "replicaCounts=3",
        "image.repo=x",
        "image.repository=",
        "image.repository=two words",
        "image.tag=a:b",
        "image.pullPolicy=Sometimes",
        "replicaCount=two",
        "crds.install=true",
        "metrics.serviceMonitor.enable=true",
        "metrics.podMonitor.interval=often",
        "extraArgs={native}",
        "extraArgs={--pull-ahaed}",
        "extraArgs={--native}",
        "extraArgs={--no-leader-elect}",
        "native=yes please",
    ],
)
def test_a_wrong_value_is_named(helm: str, wrong: str) -> None:
    done = run_helm(helm, "template", "everynode", str(CHART), *WITHOUT_CLUSTER, "--set", wrong)
    assert done.returncode != 0
    assert done.stdout == ""
    key = wrong.partition("=")[0]
    if key.startswith(("replicaCounts", "image.repo=", "crds.install")) or key.endswith("enable"):
        assert "not allowed" in done.stderr
    assert key.rpartition(".")[2] in done.stderr


@pytest.mark.parametrize("helm", HELMS)
@pytest.mark.parametrize(
    ("wrong", "where"),
    [
        ("resources.limits.cpu=much", "/resources/limits/cpu"),
        ("resources.requests.memory=-1Gi", "/resources/requests/memory"),
        ("resources.claims[0].name=gpu", "claims"),
        ("tolerations[0].operator=Is", "/tolerations/0/operator"),
        ("tolerations[0].keys=x", "keys"),
        ("affinity.nodeAfinity.x=z", "nodeAfinity"),
        ("nodeSelector.disk=two words", "/nodeSelector/disk"),
        ("priorityClassName=Very High", "/priorityClassName"),
        (r"podLabels.app\.kubernetes\.io/name=agent", "/podLabels/app.kubernetes.io~1name"),
        (r"commonLabels.helm\.sh/chart=x", "/commonLabels/helm.sh~1chart"),
        ("commonLabels.team=two words", "/commonLabels/team"),
        ("securityContext.runAsUser=0", "/securityContext/runAsUser"),
        ("securityContext.runAsNonRoot=false", "/securityContext/runAsNonRoot"),
        ("metrics.podMonitor.endpoint.interval=1s", "/metrics/podMonitor/endpoint/interval"),
    ],
)
def test_what_the_server_would_refuse_half_way_is_refused_before(
    helm: str, wrong: str, where: str
) -> None:
    done = run_helm(helm, "template", "everynode", str(CHART), *WITHOUT_CLUSTER, "--set", wrong)
    assert (done.returncode, done.stdout) == (1, "")
    assert where in done.stderr


@pytest.mark.parametrize("helm", HELMS)
def test_a_controller_without_anything_to_do_is_refused(helm: str) -> None:
    line = ("template", "everynode", str(CHART), *WITHOUT_CLUSTER)
    done = run_helm(helm, *line, "--set", "extraArgs={--no-advanced}")
    assert (done.returncode, done.stdout) == (1, "")
    assert "set native: true" in done.stderr
    assert render(helm, "extraArgs={--no-advanced}", "native=true")


def test_every_value_is_in_the_schema_and_has_an_explanation() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    readme = (CHART / "README.md").read_text(encoding="utf-8")

    def compare(value: Any, found: Object, path: str) -> None:
        if "$ref" in found:
            found = schema["definitions"][found["$ref"].rpartition("/")[2]]
        as_in_a_pod = path in (".resources", ".affinity", ".securityContext")
        if as_in_a_pod or found.get("additionalProperties") is not False:
            assert f"| `{path[1:]}` |" in readme
            return
        assert {*found["properties"]} - {"global"} == {*value}, path
        for key, inner in value.items():
            compare(inner, found["properties"][key], f"{path}.{key}")

    compare(values, schema, "")


def test_the_values_reach_the_objects() -> None:
    digest = f"sha256:{'0' * 64}"
    objects = named(
        render(
            "helm",
            "image.repository=registry.example/everynode",
            f"image.digest={digest}",
            "image.pullPolicy=Always",
            "imagePullSecrets[0].name=registry",
            "extraArgs={--pull-ahead}",
            "podLabels.team=agents",
            "podAnnotations.note=x",
            "serviceAccount.annotations.role=y",
            "affinity.podAffinity.x=z",
            "priorityClassName=",
            "crds.enabled=false",
            "flowSchemas.enabled=false",
            "networkPolicy.enabled=false",
            "resourceQuota.enabled=false",
            "podDisruptionBudget.enabled=false",
            "metrics.scrapeAnnotations=false",
        )
    )
    kinds = {kind for kind, _ in objects}
    assert kinds == {
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
        "Deployment",
        "Pod",
    }
    assert objects["ServiceAccount", "everynode"]["metadata"]["annotations"] == {"role": "y"}
    template = objects["Deployment", "everynode"]["spec"]["template"]
    assert template["metadata"]["annotations"] == {"note": "x"}
    assert template["metadata"]["labels"]["team"] == "agents"
    pod = template["spec"]
    assert "priorityClassName" not in pod
    assert pod["imagePullSecrets"] == [{"name": "registry"}]
    assert pod["affinity"] == {"podAffinity": {"x": "z"}}
    container = pod["containers"][0]
    assert container["image"] == f"registry.example/everynode@{digest}"
    assert container["imagePullPolicy"] == "Always"
    assert container["args"][-1] == "--pull-ahead"
    test = objects["Pod", "everynode-test"]
    assert test["spec"]["containers"][0]["image"] == container["image"]
    # The Deployment, its budget and its Service must not take the pod of the test for their own.
    assert test["metadata"]["labels"]["app.kubernetes.io/name"] == "everynode-test"


def test_arguments_are_those_of_the_command_that_the_chart_does_not_set_itself() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    allowed = re.compile(schema["properties"]["extraArgs"]["items"]["pattern"])
    values = {"log_level": "debug", "log_format": "json", "namespace": "agents"}
    accepted = {
        parameter.name
        for parameter in run_command.params
        if isinstance(parameter, click.Option)
        for name in (*parameter.opts, *parameter.secondary_opts)
        if allowed.match(name) or allowed.match(f"{name}={values.get(str(parameter.name))}")
    }
    set_by_the_chart = {"native", "health_address", "metrics_address", "dashboard_address"}
    # There is one Lease, in the namespace where the role permits it, and one cluster.
    unwanted = {"leader_elect", "lease_namespace", "kubeconfig", "context"}
    known = {parameter.name for parameter in run_command.params}
    assert accepted == known - set_by_the_chart - unwanted


def test_labels_of_the_user_are_on_all_objects_and_pods() -> None:
    objects = named(
        render(
            "helm",
            *ALL,
            "commonLabels.team=agents",
            "commonLabels.stage=live",
            "podLabels.stage=test",
            "metrics.podMonitor.labels.stage=test",
            "dashboard.enabled=true",
        )
    )
    assert all(each["metadata"]["labels"]["team"] == "agents" for each in objects.values())
    template = objects["Deployment", "everynode"]["spec"]["template"]["metadata"]["labels"]
    monitor = objects["PodMonitor", "everynode"]["metadata"]["labels"]
    for labels in (template, monitor):
        assert (labels["team"], labels["stage"]) == ("agents", "test")
    selector = objects["Deployment", "everynode"]["spec"]["selector"]["matchLabels"]
    assert selector == {"app.kubernetes.io/name": "everynode"}


@pytest.mark.parametrize("helm", HELMS)
def test_the_user_of_the_pods_may_be_left_to_openshift(helm: str) -> None:
    null = ("securityContext.runAsUser=null", "securityContext.runAsGroup=null")
    objects = named(render(helm, *null))
    pods = [
        objects["Deployment", "everynode"]["spec"]["template"]["spec"],
        objects["Pod", "everynode-test"]["spec"],
    ]
    for pod in pods:
        profile = {"type": "RuntimeDefault"}
        assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": profile}


def test_an_annotation_of_the_user_replaces_one_of_the_chart() -> None:
    objects = named(render("helm", r"podAnnotations.prometheus\.io/port=http"))
    template = objects["Deployment", "everynode"]["spec"]["template"]
    assert template["metadata"]["annotations"] == {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": "http",
    }


def test_a_definition_that_is_not_kept_says_so() -> None:
    kept, not_kept = (named(render("helm", f"crds.keep={each}")) for each in ("true", "false"))
    name = ("CustomResourceDefinition", "daemonsets.apps.kruise.io")
    assert kept[name]["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    assert "annotations" not in not_kept[name]["metadata"]


@pytest.mark.parametrize("helm", HELMS)
def test_monitors_scrape_the_port_of_the_metrics(helm: str) -> None:
    timeout = "metrics.podMonitor.endpoint.scrapeTimeout=5s"
    objects = named(render(helm, *ALL, "metrics.podMonitor.interval=15s", timeout))
    container = objects["Deployment", "everynode"]["spec"]["template"]["spec"]["containers"][0]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    service = objects["Service", "everynode-metrics"]
    assert [port["name"] for port in service["spec"]["ports"]] == ["metrics"]
    assert {port["port"] for port in service["spec"]["ports"]} == {ports["metrics"]}
    selector = objects["Deployment", "everynode"]["spec"]["selector"]["matchLabels"]
    assert service["spec"]["selector"] == selector
    monitors = [objects["ServiceMonitor", "everynode"], objects["PodMonitor", "everynode"]]
    for monitor in monitors:
        assert monitor["spec"]["selector"]["matchLabels"].items() <= (
            service["metadata"]["labels"].items()
        )
    scraped = {"port": "metrics", "path": "/metrics", "honorLabels": True}
    assert monitors[0]["spec"]["endpoints"] == [scraped]
    assert monitors[1]["spec"]["podMetricsEndpoints"] == [
        {**scraped, "interval": "15s", "scrapeTimeout": "5s"}
    ]
    rules = yaml.safe_load(RULES.read_text(encoding="utf-8"))
    assert objects["PrometheusRule", "everynode"]["spec"] == rules
    data = objects["ConfigMap", "everynode-dashboard"]["data"]
    assert json.loads(data["everynode.json"]) == json.loads(DASHBOARD.read_text(encoding="utf-8"))


def test_every_panel_uses_metrics_and_labels_that_a_controller_exposes() -> None:
    scraped = bad_image("apps/v1").series
    exposed = {name.partition("{")[0] for name in scraped}
    labels = {label for name in scraped for label in re.findall(r"(\w+)=", name)} | {"le"}
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels) > 5
    for panel in panels:
        for target in panel["targets"]:
            used = {*re.findall(r"\beverynode_\w+", target["expr"])}
            assert used
            assert used <= exposed, panel["title"]
            grouped = re.findall(r"(?:by|on) \(([\w, ]+)\)", target["expr"])
            assert {one for each in grouped for one in each.split(", ")} <= labels, panel["title"]
