"""Installing, as people type it: printed, on the embedded cluster and on real Kubernetes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from everynode.cli import doctor
from everynode.cli.install import command, install
from everynode.errors import UserError
from everynode.install import InstallOptions, install_objects
from everynode.install.apply import Consent
from everynode.localkube.control_plane import ControlPlane, ControlPlaneOptions
from tests.support import kubernetes
from tests.support.install_cluster import KRUISES_CRD, Served

IMAGE = "everynode:test"
ACCOUNT = "system:serviceaccount:everynode-system:everynode"


def typed(*arguments: str) -> Result:
    return CliRunner().invoke(command, arguments, catch_exceptions=True)


def examine(*arguments: str) -> dict[str, Any]:
    """Return what `everynode doctor` finds."""
    result = CliRunner().invoke(doctor.command, [*arguments, "-o", "json"])
    found: dict[str, Any] = json.loads(result.stdout)
    return found


# --- Without a cluster ---------------------------------------------------------------------------


def test_printing_needs_no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    printed = list(yaml.safe_load_all(typed("--print").stdout))
    assert [each["kind"] for each in printed][:2] == ["CustomResourceDefinition", "Namespace"]


def test_an_image_prints_the_controller_too() -> None:
    printed = list(yaml.safe_load_all(typed("--print", "--image", IMAGE).stdout))
    assert printed[-1]["kind"] == "Deployment"
    assert printed[-1]["spec"]["template"]["spec"]["containers"][0]["image"] == IMAGE


def test_another_namespace_is_used_everywhere() -> None:
    text = typed("--print", "--image", IMAGE, "--namespace", "agents").stdout
    assert "everynode-system" not in text


@pytest.mark.parametrize(
    "wrong",
    [("--namespace", "Not_A_Name"), ("--image", "two words"), ("--image", ""), ("--image", " ")],
)
def test_wrong_usage_is_refused_before_anything_is_asked(wrong: tuple[str, str]) -> None:
    result = typed(*wrong)
    assert result.exit_code == 2
    assert "Error: Invalid value for " in result.stderr
    assert f"{wrong[0]}': " in result.stderr


def test_a_failure_is_one_line_and_exit_code_1(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "everynode", "install", "--kubeconfig", str(tmp_path / "none")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert ran.stderr.startswith("everynode: cannot read the kubeconfig")
    assert ran.stderr.count("\n") == 1


# --- The embedded cluster ------------------------------------------------------------------------


async def test_each_object_is_printed_with_its_outcome(
    capsys: pytest.CaptureFixture[str],
) -> None:
    served, wanted = Served(), install_objects(InstallOptions(image=IMAGE))
    await install(served.client, served.clock, wanted, Consent())
    first = capsys.readouterr().out.splitlines()
    await install(served.client, served.clock, wanted, Consent())
    second = capsys.readouterr().out.splitlines()
    assert first[1:3] == ["namespace/everynode-system created", "serviceaccount/everynode created"]
    assert second[1:3] == [
        "namespace/everynode-system unchanged",
        "serviceaccount/everynode unchanged",
    ]


async def test_a_crd_from_helm_is_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    served = Served()
    await served.have_kruises_crd()
    await install(
        served.client, served.clock, install_objects(InstallOptions()), Consent(adopt_crd=True)
    )
    assert "the CRD came with the Helm release kruise" in capsys.readouterr().err


# --- Real Kubernetes -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Cluster:
    """A real control plane and its kubectl."""

    plane: ControlPlane
    kubectl_program: Path

    def install(self, *arguments: str, kubeconfig: Path | None = None) -> Result:
        return typed("--kubeconfig", str(kubeconfig or self.plane.kubeconfig), *arguments)

    def kubectl(self, *arguments: str, given: str = "") -> str:
        ran = subprocess.run(
            [self.kubectl_program, f"--kubeconfig={self.plane.kubeconfig}", *arguments],
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    def get(self, *arguments: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.kubectl("get", "-o", "json", *arguments))
        return found

    def may(self, user: str, verb: str, resource: str) -> bool:
        """Ask whether a user may do something in namespace default."""
        plural, _, subresource = resource.partition("/")
        ran = subprocess.run(
            [
                self.kubectl_program,
                f"--kubeconfig={self.plane.kubeconfig}",
                *("auth", "can-i", verb, plural, f"--subresource={subresource}"),
                *("--as", user, "-n", "default", "-q"),
            ],
            check=False,
        )
        return ran.returncode == 0

    def kubeconfig_of(self, user: str, folder: Path) -> Path:
        """Write a kubeconfig that impersonates a user with fewer rights."""
        config = yaml.safe_load(self.plane.kubeconfig.read_text())
        config["users"][0]["user"]["as"] = user
        path = folder / f"{user}.kubeconfig"
        path.write_text(yaml.safe_dump(config))
        return path


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    options = ControlPlaneOptions(
        scheduler=False,
        # The one that joins our roles to the built-in ones.
        controllers="clusterrole-aggregation-controller",
        extra_flags={
            "kube-apiserver": [
                "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
            ]
        },
    )
    programs = kubernetes.programs()
    with kubernetes.running(options) as plane:
        yield Cluster(plane, programs / "kubectl")


@pytest.fixture
def installed(cluster: Cluster) -> Cluster:
    result = cluster.install("--image", IMAGE, "--force")
    assert result.exit_code == 0, result.output
    return cluster


real = [pytest.mark.kubernetes, pytest.mark.timeout(240)]


class TestRealKubernetes:
    pytestmark = real

    def test_installing_twice_changes_nothing(self, cluster: Cluster) -> None:
        kinds = "crd,clusterrole,clusterrolebinding,ns,sa,role,rolebinding,quota,netpol,pdb,deploy"
        look = (kinds, "-A", "-l", "app.kubernetes.io/part-of=everynode")
        first = cluster.install("--image", IMAGE)
        before = cluster.get(*look)["items"]
        flows = cluster.get("flowschema", *look[2:])["items"]  # the server writes their status
        second = cluster.install("--image", IMAGE)
        after = cluster.get(*look)["items"]
        assert first.exit_code == second.exit_code == 0
        assert {line.split()[-1] for line in first.stdout.splitlines()[:-1]} == {"created"}
        assert {line.split()[-1] for line in second.stdout.splitlines()[:-1]} == {"unchanged"}
        assert len(before) + len(flows) == len(install_objects(InstallOptions(image=IMAGE)))
        assert versions(after) == versions(before)

    def test_the_custom_kind_is_served_at_once(self, installed: Cluster) -> None:
        installed.kubectl("delete", "crd", "daemonsets.apps.kruise.io")
        assert installed.install().exit_code == 0
        assert installed.get("daemonsets.v1alpha1.apps.kruise.io", "-A")["items"] == []
        assert installed.get("daemonsets.v1beta1.apps.kruise.io", "-A")["items"] == []

    def test_the_doctor_finds_only_that_no_replica_runs(
        self, installed: Cluster, tmp_path: Path
    ) -> None:
        found = examine("--kubeconfig", str(installed.plane.kubeconfig))
        # Nothing starts the pods of a Deployment here.
        assert [each["check"] for each in found["items"]] == ["controller"]
        assert found["notChecked"] == []
        wanting = examine("--kubeconfig", str(installed.plane.kubeconfig), "--native")
        assert [each["check"] for each in wanting["items"]] == ["controller", "permissions"]
        assert "patch daemonsets.apps/status" in wanting["items"][1]["message"]
        without_rights = installed.kubeconfig_of("without-rights", tmp_path)
        blind = examine("--kubeconfig", str(without_rights))
        assert [each["check"] for each in blind["items"]] == ["own-permissions"]
        assert "you may not get/list daemonsets.apps" in blind["items"][0]["message"]
        assert len(blind["notChecked"]) == 6

    def test_what_is_printed_passes_kubectl(self, installed: Cluster) -> None:
        text = typed("--print", "--image", IMAGE, "--native").stdout
        said = installed.kubectl("apply", "--dry-run=server", "-f", "-", given=text)
        assert len(said.splitlines()) == len(install_objects(InstallOptions(image=IMAGE)))

    def test_the_controllers_pod_is_allowed_where_pods_are_restricted(
        self, installed: Cluster
    ) -> None:
        namespace = installed.get("ns", "everynode-system")
        assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
        template = installed.get("deploy", "everynode", "-n", "everynode-system")["spec"][
            "template"
        ]
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**template["metadata"], "name": "as-the-template"},
            "spec": template["spec"],
        }
        create = ("create", "-n", "everynode-system", "--dry-run=server", "-f", "-")
        assert "created" in installed.kubectl(*create, given=json.dumps(pod))
        pod["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True
        with pytest.raises(AssertionError, match="violates PodSecurity"):
            installed.kubectl(*create, given=json.dumps(pod))

    def test_a_user_without_rights_is_told_which_are_missing(
        self, cluster: Cluster, tmp_path: Path
    ) -> None:
        result = cluster.install(kubeconfig=cluster.kubeconfig_of("eve", tmp_path))
        assert isinstance(result.exception, UserError)
        text = str(result.exception)
        assert "get customresourcedefinitions.apiextensions.k8s.io" in text
        assert "get clusterroles.rbac.authorization.k8s.io" in text
        assert "\n" not in text

    def test_a_user_who_may_only_look_is_told_which_writes_are_missing(
        self, installed: Cluster, tmp_path: Path
    ) -> None:
        grant = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "looker"},
            "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get"]}],
        }
        installed.kubectl("apply", "-f", "-", given=json.dumps(grant))
        bind = ("create", "clusterrolebinding", "looker", "--clusterrole=looker", "--user=looker")
        installed.kubectl(*bind)
        looker = installed.kubeconfig_of("looker", tmp_path)
        result = installed.install(kubeconfig=looker)
        assert "patch roles.rbac.authorization.k8s.io in namespace everynode-system" in str(
            result.exception
        )
        # A namespace that is still to come cannot be rehearsed in, only asked about.
        result = installed.install("--namespace", "later", "--force", kubeconfig=looker)
        assert "create serviceaccounts in namespace later" in str(result.exception)

    def test_users_of_daemonsets_are_users_of_ours(self, installed: Cluster) -> None:
        for role in ("view", "edit"):
            bind = ("create", "rolebinding", role, "-n", "default")
            installed.kubectl(*bind, f"--clusterrole={role}", f"--user={role}er")
        # The view is joined to edit last.
        rule = "{.rules[?(@.resources[0]=='daemonsets/status')].apiGroups[0]}"
        wait = (f"--for=jsonpath={rule}=apps.kruise.io", "--timeout=90s")
        installed.kubectl("wait", "clusterrole", "edit", *wait)
        assert installed.may("viewer", "list", "daemonsets.apps.kruise.io")
        assert not installed.may("viewer", "create", "daemonsets.apps.kruise.io")
        assert installed.may("editer", "create", "daemonsets.apps.kruise.io")
        assert installed.may("editer", "get", "daemonsets.apps.kruise.io/status")

    def test_the_account_may_do_its_work_and_no_more(self, installed: Cluster) -> None:
        assert installed.may(ACCOUNT, "create", "pods")
        assert installed.may(ACCOUNT, "patch", "pods/resize")
        assert installed.may(ACCOUNT, "patch", "daemonsets.apps.kruise.io/status")
        assert not installed.may(ACCOUNT, "patch", "daemonsets.apps.kruise.io")
        assert not installed.may(ACCOUNT, "get", "secrets")
        assert not installed.may(ACCOUNT, "patch", "nodes")
        assert not installed.may(ACCOUNT, "create", "leases.coordination.k8s.io")
        assert not installed.may(ACCOUNT, "list", "daemonsets.apps")
        assert installed.install("--native").exit_code == 0
        assert installed.may(ACCOUNT, "list", "daemonsets.apps")

    def test_the_account_may_own_pods_where_owners_are_protected(
        self, installed: Cluster, tmp_path: Path
    ) -> None:
        assert installed.install("--native").exit_code == 0
        pods = ("create", "clusterrole", "podder", "--verb=create", "--resource=pods")
        installed.kubectl(*pods)
        bind = ("create", "rolebinding", "podder", "--clusterrole=podder", "--user=podder")
        installed.kubectl(*bind, "-n", "default")
        create = ("create", "-n", "default", "--dry-run=server", "-f", "-")
        pod = json.dumps(owned_pod())
        assert "created" in installed.kubectl(*create, "--as", ACCOUNT, given=pod)
        with pytest.raises(AssertionError, match="cannot set blockOwnerDeletion"):
            installed.kubectl(*create, "--as", "podder", given=pod)

    def test_kruises_crd_is_kept_until_its_user_agrees(self, installed: Cluster) -> None:
        installed.kubectl("delete", "crd", "daemonsets.apps.kruise.io")
        installed.kubectl("apply", "-f", "-", given=json.dumps(KRUISES_CRD))
        wait = ("wait", "crd", "daemonsets.apps.kruise.io", "--for=condition=Established")
        installed.kubectl(*wait)
        refused = installed.install()
        assert "--adopt-crd" in str(refused.exception)
        assert installed.install("--adopt-crd").exit_code == 0
        crd = installed.get("crd", "daemonsets.apps.kruise.io", "--show-managed-fields")
        assert crd["spec"]["conversion"] == {"strategy": "None"}
        owners = [(each["manager"], each["operation"]) for each in crd["metadata"]["managedFields"]]
        assert sorted(owners) == [("everynode-install", "Apply"), ("kube-apiserver", "Update")]
        assert "unchanged" in installed.install().stdout.splitlines()[0]

    def test_replicas_of_another_manager_are_not_taken_over_without_force(
        self, installed: Cluster
    ) -> None:
        scale = ("scale", "-n", "everynode-system", "deploy/everynode", "--replicas=3")
        installed.kubectl(*scale)
        refused = installed.install("--image", IMAGE)
        assert ".spec.replicas; run again with --force" in str(refused.exception)
        assert installed.install("--image", IMAGE, "--force").exit_code == 0


def owned_pod() -> dict[str, Any]:
    owner = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "name": "agent",
        "uid": "00000000-0000-4000-8000-000000000001",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "agent", "ownerReferences": [owner]},
        "spec": {"containers": [{"name": "agent", "image": "agent:1"}]},
    }


def versions(items: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(each["metadata"]["name"], each["metadata"]["resourceVersion"]) for each in items]
