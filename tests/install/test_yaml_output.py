from __future__ import annotations

import json

import yaml

from everynode.install import InstallOptions, install_objects
from everynode.install.rbac import rules
from everynode.install.yaml_output import as_yaml

ALL = install_objects(InstallOptions(image="everynode:1", native=True))


def test_the_text_means_the_objects() -> None:
    read = list(yaml.safe_load_all(as_yaml(ALL)))
    assert json.dumps(read) == json.dumps(ALL)


def test_each_rule_stands_below_its_reason() -> None:
    text = as_yaml(ALL)
    assert (
        "  # which nodes there are, and which of them can take a pod\n"
        "  - apiGroups: ['']\n"
        "    resources: [nodes]\n"
        "    verbs: [list, watch]\n"
    ) in text
    assert all(f"  # {rule.why}\n" in text for rule in rules(native=False))


def test_nothing_is_abbreviated() -> None:
    assert "&id" not in as_yaml(ALL)


def test_scripts_stand_line_by_line_and_every_reader_sees_texts_as_texts() -> None:
    data = {"script": "set -e\nexec agent\n", "1.2": "1e3", "plain": "0o17", "word": "e3"}
    text = as_yaml([{"data": data}])
    assert text == (
        "data:\n  script: |\n    set -e\n    exec agent\n"
        "  '1.2': '1e3'\n  plain: '0o17'\n  word: e3\n"
    )
    assert yaml.safe_load(text) == {"data": data}
