"""Questions with unusual contents: numbers, times, texts and sets of fields."""

from __future__ import annotations

from typing import Any

from everynode.kube.requests import APPLY_PATCH, JSON_PATCH
from everynode.kube.requests import MERGE_PATCH as M
from everynode.kube.requests import STRATEGIC_PATCH as S
from tests.agreement.question import (
    EVENTS,
    MAPS,
    PODS,
    SPACE,
    Object,
    ask,
    config_map,
    daemonset,
    meta,
    pod,
)

DRY = "?dryRun=All"
SECRETS = f"{SPACE}/secrets"
TIMES = (
    "0000-00-00T00:00:00Z",
    "0000-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z",
    "2016-12-31T23:59:60Z",
    "2023-02-29T00:00:00Z",
    "2024-02-29T00:00:00Z",
    "2024-02-30T00:00:00Z",
    "2024-01-01T24:00:00Z",
    "2024-01-01T00:00:00+99:99",
    "x",
    5,
)
DIGITS = "9" * 5000


def about(name: str) -> Object:
    """An event about something in the namespace."""
    return {**meta(name), "involvedObject": {"namespace": "NS"}}


def owned(fields: Any, **more: Any) -> Object:
    entry = {
        "manager": "x",
        "operation": "Update",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
        "time": "2024-01-01T00:00:00Z",
        **more,
    }
    return config_map("m", {"a": "b"}, managedFields=[entry])


FIELDS: tuple[Any, ...] = (
    {"f:data": 5},
    {"f:data": {"f:a": []}},
    {"k:{": {}},
    {"v:": {}},
    {"i:x": {}},
    {"k:5": {}},
    {"f:data": {"f:a": {}}},
)
CONTENTS = [
    *(ask("POST", f"{MAPS}{DRY}", owned(fields)) for fields in FIELDS),
    ask("POST", f"{MAPS}{DRY}", owned({"f:data": {}}, operation="X")),
    ask("POST", f"{MAPS}{DRY}", owned({"f:data": {}}, apiVersion="")),
    *(ask("POST", f"{EVENTS}{DRY}", {**about("e"), "firstTimestamp": time}) for time in TIMES),
    *(ask("POST", f"{MAPS}{DRY}", config_map("m", creationTimestamp=time)) for time in TIMES),
    *(
        ask("POST", f"{SECRETS}{DRY}", {**meta("s"), "data": data})
        for data in ({"a": "!!"}, {"a": "YQ"}, {"a": 5}, {"a": "YQ=="}, {"a b": "YQ=="}, 5)
    ),
    *(
        ask("POST", f"{MAPS}{DRY}", config_map("m", labels=labels))
        for labels in ({"a": 5}, {"a": True}, 5, {"": "x"}, {"a": None})
    ),
    *(
        ask("POST", f"{path}{DRY}", body)
        for seconds in (2**63 - 1, -(2**63), 2**63, 1.5, "5")
        for path, body in (
            (PODS, pod("p", terminationGracePeriodSeconds=seconds)),
            (PODS, pod("p", activeDeadlineSeconds=seconds)),
            ("/apis/apps/v1/namespaces/NS/daemonsets", daemonset("d", minReadySeconds=seconds)),
        )
    ),
    # A null in a list is the zero value of its items, also where the object is applied.
    *(
        ask("POST", f"{PODS}{DRY}", pod("p", **fields))
        for fields in (
            {"containers": [{"name": "c", "image": "i", "args": [None, "a"]}]},
            {"tolerations": [None]},
            {"containers": [None]},
        )
    ),
    ask(
        "PATCH",
        f"{PODS}/p{DRY}&fieldManager=me",
        pod("p", containers=[{"name": "c", "image": "i", "args": [None, "a"]}]),
        APPLY_PATCH,
    ),
    ask("POST", MAPS, config_map("kept", {"a": "b"})),
    *(
        ask("PATCH", f"{MAPS}/kept{DRY}", {"metadata": {"resourceVersion": version}}, kind)
        for version in ("x", "-1", "9" * 30, DIGITS, 5)
        for kind in (M, S)
    ),
    ask("PATCH", f"{MAPS}/kept?dryRun=", {"metadata": {"$patch": "x"}}, S),
    ask(
        "PATCH",
        f"{MAPS}/kept{DRY}",
        {"metadata": {"finalizers": [""], "$setElementOrder/finalizers": [{}]}},
        S,
    ),
    *(
        ask("PATCH", f"{MAPS}/kept{DRY}", operations, JSON_PATCH)
        for operations in (
            [{"op": "add", "path": 5}],
            [{"op": 5, "path": "/a"}],
            [None],
            [5],
            [{"op": "add", "path": "/metadata/finalizers/1_0", "value": "x"}],
            [{"op": "test", "path": "/data", "value": {}}] * 10_001,
            [
                {"op": "add", "path": "/metadata/annotations", "value": {"x": "y" * 1000}},
                *[
                    {
                        "op": "copy",
                        "from": "/metadata/annotations",
                        "path": f"/metadata/annotations/{n}",
                    }
                    for n in range(40)
                ],
            ],
        )
    ),
    ask("POST", MAPS, config_map("large", {"a": "x" * 900_000}), only="metadata.name"),
    ask("PATCH", f"{MAPS}/large", {"data": {"b": "x" * 200_000}}, M),
    ask("POST", EVENTS, {**about("l"), "message": "x" * 900_000}, only="kind"),
    ask("PATCH", f"{EVENTS}/l", {"reason": "x" * 900_000}, M),
]
