"""Mistakes on the command line: the one line that is printed, and the exit code."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest
import yaml

from everynode.cli.main import main
from tests.support.commands import Up, kubeconfig
from tests.support.stage import daemonset

LISTS_ALL = "`everynode get -A` lists all"
NO_SUCH = (
    f"everynode: there is no DaemonSet nosuch, of neither kind, in namespace default; {LISTS_ALL}"
)
NO_CONTEXT = (
    "everynode: the kubeconfig asks for context 'nosuch'; there are: everynode (in {kubeconfig})"
)
WITHOUT_CONTEXT = (
    "everynode: the kubeconfig has no context; choose another file with --kubeconfig "
    "(in without-context)"
)
NO_POD = (
    "everynode: ads/done has no pod on node node-9999; `everynode why node-9999 ads/done` says why"
)
WHICH_WAY = (
    "everynode: give ds/done to make it an Advanced DaemonSet, or ads/done to make it a native one"
)
KINDS = "give NAME, ads/NAME (Advanced) or ds/NAME (native)"
NODES_OR_PERCENT = (
    "Error: Invalid value for 'NODES|PERCENT': '{}': "
    "give a number of nodes, or a percentage such as 30%"
)
MISTAKES = [
    # The command.
    ("statu done", 2, "Error: No such command 'statu'. Did you mean 'status'?"),
    ("set picture done a=b", 2, "Error: No such command 'picture'."),
    ("-n default", 2, "Error: No such option '-n'."),
    ("-n default demo", 2, "Error: No such option '-n'."),
    # Options.
    ("status done --wach", 2, "Error: No such option '--wach'. Did you mean '--watch'?"),
    (
        "status done -o nonsense",
        2,
        "Error: Invalid value for '-o' / '--output': 'nonsense' is not one of 'json', 'yaml'.",
    ),
    (
        "status done --watch --timeout abc",
        2,
        "everynode: --timeout abc: give a duration such as 20s, 1m30s or 2h",
    ),
    ("status done --timeout 5s", 2, "Error: --timeout needs --watch"),
    ("status done --watch -o json", 2, "Error: -o prints one document: leave out --watch"),
    (
        "get -l 'a in'",
        2,
        "everynode: --selector a in: unable to parse requirement: found '' expected: '('",
    ),
    ("get done -A", 2, "Error: give names, or --all-namespaces and --selector, not both"),
    ("restart -A", 2, "everynode: give the names of DaemonSets, or a selector with -l"),
    # Names.
    ("status", 2, "Error: Missing argument 'NAME'."),
    (
        "status nosuch",
        1,
        NO_SUCH,
    ),
    (
        "status done -n other",
        1,
        f"everynode: there is no DaemonSet done, of neither kind, in namespace other; {LISTS_ALL}",
    ),
    (
        "-n other status done",
        1,
        f"everynode: there is no DaemonSet done, of neither kind, in namespace other; {LISTS_ALL}",
    ),
    (
        "status ds/done",
        1,
        "everynode: there is no ds/done in namespace default, but there is ads/done",
    ),
    (
        "status net",
        2,
        "everynode: namespace default has two DaemonSets net: type ads/net or ds/net",
    ),
    ("status deploy/done", 2, f"everynode: deploy/done: {KINDS}"),
    ("status a/b/c", 2, f"everynode: a/b/c: {KINDS}"),
    (
        "status ''",
        2,
        "everynode: '' cannot be the name of a DaemonSet: lower case letters, digits, '-' and '.'",
    ),
    ("why node-9999", 1, "everynode: there is no node node-9999; `kubectl get nodes` lists all"),
    (
        "why node-0002 nosuch",
        1,
        NO_SUCH,
    ),
    ("logs done", 2, "Error: Missing option '--node'."),
    (
        "logs done --node node-9999",
        1,
        NO_POD,
    ),
    (
        "exec done --node node-0002",
        2,
        "Error: say what to run: everynode exec NAME --node NODE -- COMMAND",
    ),
    # Changes.
    (
        "set image done nosuch=agent:2",
        1,
        "everynode: there is no container nosuch; there are: agent",
    ),
    ("set image done", 2, "Error: say which image: CONTAINER=IMAGE"),
    ("set image done agent=", 2, "Error: 'agent=': write CONTAINER=IMAGE, without spaces"),
    ("partition done 120%", 2, NODES_OR_PERCENT.format("120%")),
    ("partition done -- -1", 2, NODES_OR_PERCENT.format("-1")),
    ("partition done many", 2, NODES_OR_PERCENT.format("many")),
    ("undo done --to-revision 9", 1, "everynode: ads/done has no revision 9; there are: 1"),
    ("undo done", 1, "everynode: ads/done has no earlier revision; there are: 1"),
    ("history done --revision 9", 1, "everynode: ads/done has no revision 9; there are: 1"),
    ("history done --diff 1", 2, "Error: Option '--diff' requires 2 arguments."),
    (
        "migrate done",
        2,
        WHICH_WAY,
    ),
    ("migrate ds/nosuch", 1, f"everynode: there is no ds/nosuch; {LISTS_ALL}"),
    # The way to the cluster.
    (
        "status done --context nosuch",
        1,
        NO_CONTEXT,
    ),
    (
        "--context nosuch status done",
        1,
        NO_CONTEXT,
    ),
    (
        "get --kubeconfig missing",
        1,
        "everynode: cannot read the kubeconfig missing: No such file or directory",
    ),
    (
        "get --kubeconfig without-context",
        1,
        WITHOUT_CONTEXT,
    ),
    # Files.
    ("lint", 2, "Error: Missing option '-f' / '--filename'."),
    ("lint -f missing.yaml", 1, "everynode: cannot read missing.yaml: No such file or directory"),
    (
        "lint -f broken.yaml",
        1,
        "everynode: broken.yaml, line 2: not valid YAML: did not find expected node content",
    ),
    ("lint -f pod.yaml", 1, "everynode: pod.yaml holds no DaemonSet"),
    ("simulate -f pod.yaml", 1, "everynode: pod.yaml holds no DaemonSet"),
    # Plans.
    ("plan", 2, "Error: give the NAME of a DaemonSet, or a manifest with -f FILE"),
    (
        "plan done -f pod.yaml",
        2,
        "Error: give the NAME of a DaemonSet, or a manifest with -f FILE, not both",
    ),
    ("plan nosuch", 1, NO_SUCH),
    ("plan -f pod.yaml", 1, "everynode: pod.yaml holds no DaemonSet"),
    ("plan -f two.yaml", 1, "everynode: two.yaml holds 2 DaemonSets (a, b): plan one at a time"),
    (
        "plan -f two.yaml -n other",
        1,
        "everynode: two.yaml holds 2 DaemonSets (a, b): plan one at a time",
    ),
    (
        "plan -f elsewhere.yaml -n default",
        2,
        "everynode: the manifest is for namespace elsewhere, and -n says default",
    ),
    (
        "plan -f twin.yaml",
        1,
        (
            "everynode: the manifest is of ds/done, and namespace default has ads/done: two "
            "DaemonSets would run; `everynode migrate ads/done` changes the kind"
        ),
    ),
    (
        "plan done --set-image agent",
        2,
        "everynode: --set-image agent: write CONTAINER=IMAGE, such as agent=agent:1.1",
    ),
    (
        "plan done --set-image nosuch=agent:2",
        1,
        "everynode: there is no container nosuch; there are: agent",
    ),
    (
        "plan done --max-unavailable many",
        2,
        "everynode: --max-unavailable many: give a number of nodes or a percentage such as 10%",
    ),
    (
        "plan done --start soon",
        2,
        "everynode: --start soon: give a duration such as 20s, 1m30s or 2h",
    ),
    (
        "plan ds/net --partition 2",
        1,
        (
            "everynode: ds/net is a native DaemonSet, which has no `partition`; "
            "`everynode migrate ds/net` makes an Advanced one of it"
        ),
    ),
    (
        "plan done --max-unavailable 120%",
        1,
        (
            'everynode: the new version is refused: DaemonSet.apps.kruise.io "done" is invalid: '
            'spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: "120%": '
            "must not be greater than 100%"
        ),
    ),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "broken.yaml").write_text("a: [\n")
    (tmp_path / "pod.yaml").write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n")
    manifests = {
        "two.yaml": [daemonset("a"), daemonset("b")],
        "twin.yaml": [daemonset("done", api_version="apps/v1")],
        "elsewhere.yaml": [{**daemonset("a"), "metadata": {"name": "a", "namespace": "elsewhere"}}],
    }
    for name, documents in manifests.items():
        (tmp_path / name).write_text(yaml.safe_dump_all(documents))
    (tmp_path / "without-context").write_text("apiVersion: v1\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def type_(line: str, monkeypatch: pytest.MonkeyPatch) -> int | str | None:
    """Run a command line as the program does; return the exit code."""
    monkeypatch.setattr(sys, "argv", ["everynode", *shlex.split(line)])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


@pytest.mark.parametrize(("line", "code", "text"), MISTAKES, ids=[each[0] for each in MISTAKES])
def test_a_mistake_is_answered_with_one_line(
    rollouts: Up,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    line: str,
    code: int,
    text: str,
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(rollouts.kubeconfig))
    assert type_(line, monkeypatch) == code
    said = capsys.readouterr()
    assert said.err.splitlines()[-1] == text.replace("{kubeconfig}", str(rollouts.kubeconfig))
    # A user error is one line; wrong usage comes after the usage of the command.
    assert said.err.count("\n") == 1 or said.err.startswith("Usage: ")
    assert said.out == ""


def test_a_server_that_does_not_answer(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBECONFIG", kubeconfig(folder, "http://127.0.0.1:1"))
    assert type_("get", monkeypatch) == 1
    said = capsys.readouterr().err
    assert said.startswith("everynode: ")
    assert "127.0.0.1:1" in said
    assert said.count("\n") == 1


def test_options_of_a_cluster_may_stand_before_the_command(
    rollouts: Up, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        sys, "argv", f"everynode --kubeconfig {rollouts.kubeconfig} -n default get done".split()
    )
    main()
    assert "done" in capsys.readouterr().out
