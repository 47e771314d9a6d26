from __future__ import annotations

import json

from everynode.cli.history import command
from tests.support.commands import Up, typed


def test_the_revisions_with_images_and_change_causes(rollouts: Up) -> None:
    head, first, second = typed(command, rollouts, "held").stdout.splitlines()
    assert head.split() == ["REVISION", "AGE", "IMAGES", "CHANGE-CAUSE"]
    assert first.split()[2:] == ["agent:v1", "first"]
    assert second.startswith("2 (target)")
    assert second.endswith("a:2        image a:2")
    wide = typed(command, rollouts, "held", "-o", "wide").stdout.splitlines()
    assert wide[0].split()[:4] == ["REVISION", "AGE", "HASH", "PODS"]
    assert [line.replace(" (target)", "").split()[3] for line in wide[1:]] == ["3", "2"]
    items = json.loads(typed(command, rollouts, "held", "-o", "json").stdout)["items"]
    assert [(item["revision"], item["pods"], item["target"]) for item in items] == [
        (1, 3, False),
        (2, 2, True),
    ]


def test_one_revision_and_what_changed(rollouts: Up) -> None:
    assert "image: agent:v1" in typed(command, rollouts, "held", "--revision", "1").stdout
    changed = typed(command, rollouts, "held", "--diff", "1", "2").stdout.splitlines()
    assert [line for line in changed if line[0] in "+-"] == [
        "--- revision 1",
        "+++ revision 2",
        "-  - image: agent:v1",
        "+  - image: a:2",
    ]
    assert typed(command, rollouts, "held", "--diff", "1", "1").stdout == "No difference.\n"


def test_mistakes(rollouts: Up) -> None:
    missing = typed(command, rollouts, "held", "--revision", "9")
    assert str(missing.exception) == "ads/held has no revision 9; there are: 1, 2"
    both = ("--revision", "1", "--diff", "1", "2")
    assert typed(command, rollouts, "held", *both).exit_code == 2
    assert typed(command, rollouts, "held", "--revision", "1", "-o", "json").exit_code == 2
