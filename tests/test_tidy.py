"""The house rules that a machine can check."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.paths import ROOT

SOURCES = sorted((ROOT / "src").rglob("*.py"))
MAX_FILE = 500
MAX_FUNCTION = 60
MAX_MODULES = 16
BANNED_NAMES = {"utils", "helpers", "common", "manager", "base", "misc"}


# Words of an older dialect: each has a plain or a Kubernetes word instead (docs/glossary.md).
BANNED_WORDS = re.compile(
    r"\b(whoever|whomever|whom|somebody|someone|nobody|everybody|everyone|anybody|lest|so many"
    r"|for ever|in vain|tellers?|truces?|stumble[sd]?|encores?|sky|weather|doors?|seats?|crews?"
    r"|referees?|judge[sd]?|judging|tales?|happenings?|pullers?|machinery|upheavals?"
    r"|holdups?|likeness|thrift|circling|mortal|strangers?)\b",
    re.IGNORECASE,
)
# Texts that contain such a word and cannot change, each with its reason.
RECORDED = {
    "everynode.io/puller": "a label on pods of running clusters",
    '"happenings"': "a field of replay files and of simulate -o json",
    '"encore"': "a field of replay files",
    '"late-encore"': "the name of a plan; traces contain it",
    '"stick-pullers"': "the name of an action in replay files",
    '"stuck-puller"': "the name of a reference scenario",
    '/door"': "part of a random seed: every recorded seed depends on it",
    '/sky"': "part of a random seed: every recorded seed depends on it",
    '/upheavals"': "part of a random seed: every recorded seed depends on it",
    '/holdups"': "part of a random seed: every recorded seed depends on it",
    '"machinery"': "the name of a simulated process; traces contain it",
    "0.000  machinery": "the same in the output that docs/simulation.md shows",
}
# Texts of others, and this list.
NOT_OURS = re.compile(r"(^|/)LICENSE$|^tests/test_tidy\.py$|^tests/browser/axe-core/")

# Class names that two modules use, each with what the folder makes plain.
SHARED_CLASS_NAMES = {
    "NodeState": "of one decision (decide); of a node in a recording (forecast)",
    "Plan": "of a DaemonSet (decide); of a simulated world (sim): docs/glossary.md",
}
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
TESTS = ROOT / "tests"
PACKAGE = ROOT / "src" / "everynode"
# Modules without a test file of the same name, and the test file that covers them.
COVERED_BY = {
    "cli/checkup/facts.py": "cli/checkup/test_findings.py",
    "cli/migrate.py": "cli/migration/test_run.py",
    "cli/partition.py": "cli/change/test_run.py",
    "cli/pause.py": "cli/change/test_run.py",
    "cli/restart.py": "cli/change/test_run.py",
    "cli/resume.py": "cli/change/test_run.py",
    "cli/set.py": "cli/change/test_run.py",
    "cli/undo.py": "cli/change/test_run.py",
    "change/revisions.py": "cli/change/test_run.py",
    "change/write.py": "cli/change/test_run.py",
    "cli/change/options.py": "cli/change/test_run.py",
    "components/kubelet/reported_status.py": "components/kubelet/test_kubelet.py",
    "components/kubelet/resize.py": "components/kubelet/test_kubelet.py",
    "forecast/answer.py": "forecast/test_forecast.py",
    "forecast/node_plans.py": "forecast/test_planned_rollout.py",
    "forecast/played_rollout.py": "forecast/test_forecast.py",
    "inspect/node_usage.py": "cli/planning/test_room.py",
    "inspect/stored_objects.py": "forecast/test_planned_rollout.py",
    "controller/retries.py": "controller/test_revisions.py",
    "decide/decision.py": "decide/test_ledger.py",
    "sim/actions/context.py": "sim/plans/test_scenarios.py",
    "sim/actions/nodes.py": "sim/plans/test_scenarios.py",
    "sim/actions/pods.py": "sim/plans/test_scenarios.py",
    "sim/actions/processes.py": "sim/plans/test_scenarios.py",
    "sim/actions/servers.py": "sim/plans/test_scenarios.py",
    "sim/actions/users.py": "sim/plans/test_scenarios.py",
    "sim/plans/builders.py": "sim/plans/test_scenarios.py",
    "__main__.py": "cli/test_main.py",
    "pytest_plugin.py": "docs/test_python_page.py",
    "clock.py": "sim/engine/test_clock.py",
    "api/daemonset.py": "api/test_versions.py",
    "api/keys.py": "api/test_conversion.py",
    "api/validation/accessors.py": "api/validation/test_daemonset.py",
    "api/validation/container.py": "api/validation/test_daemonset.py",
    "api/validation/downward_api.py": "api/validation/test_daemonset.py",
    "api/validation/environment.py": "api/validation/test_daemonset.py",
    "api/validation/probe.py": "api/validation/test_daemonset.py",
    "api/validation/resources.py": "api/validation/test_daemonset.py",
    "api/validation/scheduling.py": "api/validation/test_daemonset.py",
    "api/validation/selector.py": "api/validation/test_daemonset.py",
    "api/validation/volume.py": "api/validation/test_daemonset.py",
    "apiserver/bootstrap.py": "apiserver/test_server.py",
    "apiserver/request/api_request.py": "apiserver/request/test_paths.py",
    "apiserver/resources/strategy.py": "apiserver/test_hostile_contents.py",
    "apiserver/verbs/subresources.py": "apiserver/verbs/test_dispatch.py",
    "cli/access/cluster_names.py": "cli/access/test_completion.py",
    "cli/access/kubectl.py": "cli/test_logs.py",
    "cli/access/options.py": "cli/access/test_cluster.py",
    "cli/exec.py": "cli/test_logs.py",
    "cli/planning/answer.py": "cli/test_plan.py",
    "cli/planning/dry_run.py": "e2e/test_plan.py",
    "cli/planning/lines.py": "cli/test_plan.py",
    "cli/planning/question.py": "cli/test_mistakes.py",
    "cli/planning/run.py": "cli/test_plan.py",
    "cli/planning/timing.py": "forecast/test_planned_rollout.py",
    "cli/rollout/documents.py": "cli/test_nodes.py",
    "cli/rollout/explanation.py": "cli/test_why.py",
    "cli/rollout/lines.py": "cli/test_get.py",
    "cli/rollout/marks.py": "cli/test_status.py",
    "cli/rollout/templates.py": "cli/test_history.py",
    "cli/serving/event_loop.py": "cli/test_run.py",
    "cli/serving/demo.py": "cli/test_demo.py",
    "cli/serving/images.py": "cli/test_image.py",
    "cli/serving/options.py": "cli/test_demo.py",
    "cli/serving/run.py": "cli/test_run.py",
    "cli/serving/running_server.py": "cli/test_up.py",
    "cli/serving/simulated_nodes.py": "cli/test_node.py",
    "cli/serving/up.py": "cli/test_up.py",
    "cli/terminal/output.py": "cli/test_get.py",
    "cli/terminal/style.py": "cli/terminal/test_table.py",
    "components/annotations.py": "components/kubelet/test_nodes.py",
    "components/informers.py": "components/controllers/test_garbage_collector.py",
    "components/kubelet/admission.py": "components/kubelet/test_kubelet.py",
    "components/kubelet/container.py": "components/kubelet/test_pod.py",
    "components/kubelet/node.py": "components/kubelet/test_pod.py",
    "components/kubelet/registration.py": "components/kubelet/test_nodes.py",
    "components/kubelet/status.py": "components/kubelet/test_kubelet.py",
    "components/scheduler/filters.py": "components/scheduler/test_scheduler.py",
    "controller/requests.py": "controller/test_reconcile.py",
    "dashboard/actions.py": "cli/test_dashboard.py",
    "dashboard/cells.py": "dashboard/test_model.py",
    "dashboard/feed.py": "cli/test_dashboard.py",
    "dashboard/server.py": "cli/test_dashboard.py",
    "dashboard/sets.py": "cli/test_dashboard.py",
    "decide/actions.py": "decide/node/test_steps.py",
    "decide/view.py": "decide/node/test_evaluate.py",
    "inspect/explain.py": "cli/test_why.py",
    "inspect/fleet.py": "inspect/test_evaluate.py",
    "inspect/live.py": "cli/test_status.py",
    "inspect/rows.py": "inspect/test_evaluate.py",
    "inspect/snapshot.py": "e2e/test_inspect.py",
    "inspect/templates.py": "cli/test_history.py",
    "kube/auth/plugin_process.py": "kube/auth/test_credentials.py",
    "kube/requests.py": "kube/test_verbs.py",
    "kube/transport.py": "kube/test_client.py",
    "localkube/certificates.py": "localkube/test_control_plane.py",
    "localkube/control_plane_config.py": "localkube/test_control_plane.py",
    "localkube/node.py": "node/test_life.py",
    "localkube/node_cleanup.py": "node/test_life.py",
    "localkube/node_network.py": "localkube/test_node_config.py",
    "sim/actions/catalogue.py": "sim/test_world.py",
    "sim/actions/intruders.py": "sim/test_seeds.py",
    "sim/checks/check.py": "sim/checks/test_checks.py",
    "sim/checks/converged.py": "sim/checks/test_checks.py",
    "sim/checks/created_pod.py": "sim/checks/test_checks.py",
    "sim/checks/events.py": "sim/checks/test_checks.py",
    "sim/checks/finished_pods.py": "sim/checks/test_checks.py",
    "sim/checks/hooks.py": "sim/checks/test_checks.py",
    "sim/checks/inplace.py": "sim/checks/test_checks.py",
    "sim/checks/last_pods.py": "sim/test_regression_plans.py",
    "sim/checks/leadership.py": "sim/checks/test_checks.py",
    "sim/checks/max_unavailable.py": "sim/checks/test_checks.py",
    "sim/checks/no_ping_pong.py": "sim/checks/test_checks.py",
    "sim/checks/one_pod_per_node.py": "sim/checks/test_checks.py",
    "sim/checks/oracle.py": "sim/checks/test_checks.py",
    "sim/checks/ownership.py": "sim/checks/test_checks.py",
    "sim/checks/possible_views.py": "sim/checks/test_checks.py",
    "sim/checks/preconditions.py": "sim/checks/test_checks.py",
    "sim/checks/request_rate.py": "sim/checks/test_checks.py",
    "sim/checks/revisions.py": "sim/checks/test_checks.py",
    "sim/checks/status.py": "sim/checks/test_checks.py",
    "sim/checks/status_conflicts.py": "sim/checks/test_checks.py",
    "sim/checks/withdrawn.py": "sim/test_regression_plans.py",
    "sim/engine/process.py": "sim/engine/test_loop.py",
    "sim/faults/active.py": "sim/faults/test_catalogue.py",
    "sim/faults/responses.py": "sim/test_seeds.py",
    "sim/faults/transport.py": "sim/test_seeds.py",
    "sim/faults/watch.py": "sim/test_seeds.py",
    "sim/history/record.py": "sim/history/test_cluster_state.py",
    "sim/history/timeline.py": "cli/simulation/test_campaign.py",
    "sim/plans/manifests.py": "sim/test_determinism.py",
    "sim/plans/plan.py": "sim/explore/test_replay.py",
    "sim/plans/variations.py": "sim/plans/test_generate.py",
}


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_source_files_are_small_and_say_what_they_answer(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    assert text.count("\n") <= MAX_FILE
    assert ast.get_docstring(tree)
    assert path.stem not in BANNED_NAMES
    for function in functions(tree):
        assert function.end_lineno is not None
        assert function.end_lineno - function.lineno < MAX_FUNCTION, function.name


def test_a_class_name_has_one_meaning() -> None:
    places: dict[str, list[str]] = {}
    for path in SOURCES:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(str(path.relative_to(PACKAGE)))
    shared = {name: found for name, found in places.items() if len(found) > 1}
    assert shared.keys() == SHARED_CLASS_NAMES.keys(), shared


def tracked_text_files() -> list[Path]:
    listing = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.splitlines()
    binary = {".png", ".webp", ".svg", ".gif", ".sum", ".txt"}
    return [ROOT / name for name in listing if Path(name).suffix not in binary]


def test_no_task_is_left_behind_without_a_number() -> None:
    loose = re.compile(r"\b(TODO|FIXME|XXX)\b(?! *\(#\d+\))")
    found = [
        str(path.relative_to(ROOT))
        for path in tracked_text_files()
        if path.exists() and path != Path(__file__).resolve() and loose.search(path.read_text())
    ]
    assert found == []


def test_the_changelog_speaks_of_the_current_version() -> None:
    version = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.M)
    assert version is not None
    assert f"## {version[1]}" in (ROOT / "CHANGELOG.md").read_text()


def test_all_files_use_plain_words() -> None:
    found = []
    for path in tracked_text_files():
        name = str(path.relative_to(ROOT))
        if not path.exists() or NOT_OURS.search(name):
            continue
        text = path.read_text(encoding="utf-8")
        for recorded in RECORDED:
            text = text.replace(recorded, "")
        # An underscore belongs to a word for a regular expression, but separates words in names.
        for number, line in enumerate(text.replace("_", " ").splitlines(), 1):
            found += [f"{name}:{number}: {hit[0]}" for hit in BANNED_WORDS.finditer(line)]
    assert found == []


def test_no_recorded_word_is_allowed_that_is_gone() -> None:
    texts = [p.read_text(encoding="utf-8") for p in tracked_text_files() if p.exists()]
    assert [each for each in RECORDED if sum(each in text for text in texts) < 2] == []


# --- The documents about the source --------------------------------------------------------------


def test_the_diagram_of_the_architecture_shows_the_layers_of_the_contract() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    _entry_points, *layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    [diagram] = re.findall(r"```\n( cli .*?)```", ARCHITECTURE, re.DOTALL)
    assert [layer.strip() for layer in diagram.split("→")] == layers


def test_every_folder_has_one_section_of_the_architecture_and_a_question_in_contributing() -> None:
    folders = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))
    assert sorted(re.findall(r"^### `(\w+)`: ", ARCHITECTURE, re.MULTILINE)) == folders
    questions = set(re.findall(r"`src/everynode/(\w+)", (ROOT / "CONTRIBUTING.md").read_text()))
    assert sorted(questions) == folders


def test_every_module_of_the_controller_is_explained() -> None:
    modules = [path.name for path in (PACKAGE / "controller").glob("[!_]*.py")]
    assert [name for name in sorted(modules) if f"`controller/{name}`" not in ARCHITECTURE] == []


def test_only_folders_with_a_reason_have_many_modules() -> None:
    [reason] = re.findall(r"^A folder answers one question.*?\n\n", ARCHITECTURE, re.M | re.DOTALL)
    large = [
        str(folder.parent.relative_to(PACKAGE))
        for folder in PACKAGE.rglob("__init__.py")
        if len(list(folder.parent.glob("[!_]*.py"))) > MAX_MODULES
    ]
    assert sorted(set(re.findall(r"`([\w/]+)`", reason))) == sorted(large)


def mirrored(module: str) -> Path:
    """The test file of a module: tests/decide/fleet/test_scope.py of decide/fleet/scope.py."""
    path = TESTS / module
    return path.with_name(f"test_{path.name}")


def test_every_module_has_a_test_file() -> None:
    modules = {str(path.relative_to(PACKAGE)) for path in SOURCES if path.name != "__init__.py"}
    assert sorted(m for m in modules if not mirrored(m).exists() and m not in COVERED_BY) == []
    # No entry for a module that is gone or has a test file now; only test files that exist.
    assert sorted(m for m in COVERED_BY if m not in modules or mirrored(m).exists()) == []
    assert sorted(t for t in set(COVERED_BY.values()) if not (TESTS / t).exists()) == []


@pytest.mark.xdist_group("this-group")
def test_the_tests_of_a_group_run_in_one_process(request: pytest.FixtureRequest) -> None:
    # pytest-xdist appends the group to the names of tests, and schedules by these.
    grouped = request.node.nodeid.endswith("@this-group")
    assert grouped == (request.config.getoption("loadgroup", False))
