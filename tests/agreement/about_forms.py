"""Questions about other representations, responses to writes and reviews, and timeouts."""

from __future__ import annotations

from everynode.kube.requests import MERGE_PATCH as M
from tests.agreement.about_lists import METADATA, METADATA_LIST
from tests.agreement.about_refusals import REVIEWS
from tests.agreement.question import (
    ADVANCED,
    LEASES,
    MAPS,
    PODS,
    SETS,
    SPACE,
    TABLE,
    advanced,
    ask,
    config_map,
    daemonset,
    get,
    meta,
    pod,
)

MAY_I = {"spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}}

WRITTEN = [
    ask("POST", MAPS, config_map("a"), accept=METADATA),
    ask("POST", MAPS, config_map("b"), accept=TABLE),
    ask("POST", MAPS, config_map("c"), accept=METADATA_LIST),
    ask("POST", MAPS, config_map("d"), accept="text/html"),
    ask("POST", MAPS, config_map("a"), accept=METADATA),
    get(MAPS),
    ask("PATCH", f"{MAPS}/a", {"data": {"x": "y"}}, M, accept=METADATA),
    ask("PATCH", f"{MAPS}/a", {"data": {"x": "z"}}, M, accept=TABLE),
    ask("PATCH", f"{MAPS}/a", {"data": {"x": "no"}}, M, accept=METADATA_LIST),
    ask("PUT", f"{MAPS}/a", config_map("a", {"x": "!"}), accept=METADATA),
    get(f"{MAPS}/a"),
    ask("POST", PODS, pod("p"), accept=f"{TABLE},application/json"),
    ask("DELETE", f"{PODS}/p", accept=METADATA),
    ask("POST", SETS, daemonset("s"), accept=METADATA),
    ask("POST", ADVANCED, advanced("s"), accept=METADATA),
    ask("DELETE", f"{MAPS}/a", accept=METADATA),
    ask("DELETE", f"{MAPS}/b", accept="text/html"),
    get(f"{MAPS}/none", accept=METADATA_LIST),
    ask("DELETE", f"{MAPS}?fieldSelector=metadata.name%3Db", accept=METADATA_LIST),
    ask("DELETE", MAPS, accept=METADATA),
    get(MAPS),
    ask("POST", REVIEWS, MAY_I, accept=TABLE),
    ask("POST", REVIEWS, MAY_I, accept="text/html"),
    ask(
        "POST",
        REVIEWS,
        MAY_I,
        accept=METADATA,
        differs="ours does not write down who owns the fields of what it does not keep",
    ),
]
# A version of 0 stands for any, where any will do.
VERSIONS = [
    ask("POST", MAPS, config_map("v", resourceVersion="0")),
    ask("POST", MAPS, config_map("w", resourceVersion="abc")),
    ask("POST", MAPS, config_map("x", resourceVersion="7")),
    ask("POST", LEASES, {**meta("v"), "spec": {}}),
    *(
        ask("PUT", f"{MAPS}/{name}", config_map(name, {"a": version}, resourceVersion=version))
        for name in ("v", "none")
        for version in ("0", "00", "abc", "1")
    ),
    *(
        ask("PATCH", f"{MAPS}/v", {**meta("v", resourceVersion=version), "data": {"b": "c"}}, M)
        for version in ("0", "abc", "1", "")
    ),
    ask("PUT", f"{LEASES}/v", {**meta("v", resourceVersion="0"), "spec": {"holderIdentity": "a"}}),
    ask("PUT", f"{LEASES}/v", {**meta("v"), "spec": {"holderIdentity": "a"}}),
    get(MAPS),
]
TIMES = [
    get(f"{path}?timeout={timeout}", only="message")
    for path in (SPACE, MAPS, "/version", "/healthz")
    for timeout in ("5", "abc", "1x", "1s30", "-", "s", "1s1x")
] + [
    ask("POST", f"{MAPS}?timeout={timeout}", config_map(f"m{at}"))
    for at, timeout in enumerate(("", "0", "0s", "-1s", "10s", "99h", "1x", "1m30", "%2B5s"))
]
