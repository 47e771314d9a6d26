"""Questions about watches: where they start, their events, and how they are refused."""

from __future__ import annotations

from urllib.parse import quote

from everynode.kube.requests import MERGE_PATCH as M
from everynode.kube.requests import STRATEGIC_PATCH as S
from tests.agreement.about_lists import METADATA, OLD_TABLE
from tests.agreement.question import (
    DEFINITIONS,
    MAPS,
    PODS,
    TABLE,
    Object,
    Question,
    ask,
    condition,
    config_map,
    get,
    meta,
    pod,
)
from tests.agreement.servers import END

RED = quote("colour=red")
WATCH_LIST = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan"


def watch(path: str, query: str = "", **more: str) -> Question:
    return get(f"{path}?watch=true{query and '&'}{query}", **more)


def coloured(name: str, colour: str) -> Object:
    return config_map(name, labels={"colour": colour})


BEFORE = [
    ask("POST", MAPS, coloured("old", "red")),
    ask("POST", MAPS, coloured("other", "blue")),
    get(MAPS, keep={"BEGIN": "metadata.resourceVersion"}),
    ask("PATCH", f"{MAPS}/other", {"data": {"since": "then"}}, M),
    ask("POST", MAPS, coloured("brief", "red")),
    ask("DELETE", f"{MAPS}/brief"),
    ask("POST", PODS, pod("p")),
]
WATCHES = [
    watch(MAPS),
    watch(MAPS, "resourceVersion=0"),
    watch(MAPS, "resourceVersion=<BEGIN>"),
    watch(MAPS, "resourceVersion=<BEGIN>&allowWatchBookmarks=true"),
    watch(MAPS, "allowWatchBookmarks=true"),
    watch(MAPS, "resourceVersion=0&allowWatchBookmarks=true"),
    watch(MAPS, f"{WATCH_LIST}&allowWatchBookmarks=true"),
    watch(MAPS, f"{WATCH_LIST}&allowWatchBookmarks=true&resourceVersion=0"),
    watch(MAPS, f"{WATCH_LIST}&allowWatchBookmarks=true&resourceVersion=<BEGIN>"),
    watch(MAPS, f"{WATCH_LIST}&allowWatchBookmarks=true&labelSelector={RED}"),
    watch(MAPS, WATCH_LIST),
    watch(MAPS, f"{WATCH_LIST.replace('true', 'false')}&resourceVersion=<BEGIN>"),
    watch(MAPS, f"resourceVersion=<BEGIN>&labelSelector={RED}"),
    watch(MAPS, f"labelSelector={RED}"),
    watch(MAPS, f"resourceVersion=<BEGIN>&fieldSelector={quote('metadata.name=old')}"),
    watch(MAPS, f"resourceVersion=<BEGIN>&fieldSelector={quote('metadata.name!=other')}"),
    watch(
        "/api/v1/configmaps", f"labelSelector={RED}&fieldSelector={quote('metadata.namespace=NS')}"
    ),
    watch(MAPS, "resourceVersion=<BEGIN>", accept=TABLE),
    watch(MAPS, "", accept=TABLE),
    watch(MAPS, "includeObject=Object", accept=OLD_TABLE),
    watch(MAPS, f"{WATCH_LIST}&allowWatchBookmarks=true", accept=METADATA),
    watch(MAPS, f"{WATCH_LIST}&allowWatchBookmarks=true", accept=TABLE),
    watch(MAPS, "limit=1&resourceVersion=<BEGIN>"),
    watch(PODS, f"fieldSelector={quote('spec.nodeName=n1')}"),
    watch(PODS, f"fieldSelector={quote('status.phase!=Running')}"),
    watch(PODS, ""),
]
THEN = [
    ask("PATCH", f"{MAPS}/old", {"data": {"a": "1"}}, M),
    # Nothing changes, so no event is sent.
    ask("PATCH", f"{MAPS}/old", {"data": {"a": "1"}}, M),
    ask("PATCH", f"{MAPS}/old", {"metadata": {"labels": {"colour": "blue"}}}, M),
    ask("PATCH", f"{MAPS}/other", {"metadata": {"labels": {"colour": "red"}}}, M),
    ask("PATCH", f"{MAPS}/old", {"data": {"a": "2"}}, M),
    ask("PATCH", f"{MAPS}/old", {"metadata": {"labels": {"colour": "red"}}}, M),
    ask("PATCH", f"{MAPS}/old?dryRun=All", {"data": {"a": "3"}}, M),
    ask("POST", MAPS, {**config_map("held"), **meta("held", finalizers=["example.test/f"])}),
    ask("DELETE", f"{MAPS}/held"),
    ask("PATCH", f"{MAPS}/held", {"metadata": {"finalizers": None}}, M),
    ask("DELETE", f"{MAPS}/other"),
    ask("POST", f"{PODS}/p/binding", {**meta("p"), "target": {"name": "n1"}}),
    ask("PATCH", f"{PODS}/p/status", {"status": {"phase": "Running"}}, S),
    ask("PATCH", f"{PODS}/p/status", condition("Ready"), S),
    ask("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 5}),
    ask("PATCH", f"{PODS}/p/status", {"status": {"phase": "Failed"}}, S),
    ask("PATCH", f"{MAPS}/old", {"metadata": {"annotations": {END: ""}}}, M),
    ask("PATCH", f"{PODS}/p", {"metadata": {"annotations": {END: ""}}}, M),
    ask("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 0}),
]

# Watches that are over at once, or never begin.
SHORT = "timeoutSeconds=1"
ENDED = [
    ask("POST", MAPS, config_map("m")),
    get(MAPS, keep={"V": "metadata.resourceVersion"}),
    watch(MAPS, SHORT),
    watch(MAPS, f"{SHORT}&resourceVersion=<V>"),
    watch(MAPS, f"{SHORT}&resourceVersion=<V>00"),
    watch(MAPS, f"{SHORT}&{WATCH_LIST}&allowWatchBookmarks=true"),
    watch(f"{MAPS}/m", SHORT),
    watch(f"{MAPS}/none", SHORT),
    watch(MAPS, f"{SHORT}&fieldSelector=metadata.name%3Dm"),
    watch("/api/v1/namespaces/nowhere/configmaps", SHORT),
    get(f"{MAPS}?watch=1&{SHORT}"),
    get(f"{MAPS}?watch=false"),
    get(f"{MAPS}?watch=0"),
    get(f"{MAPS}?watch=maybe&{SHORT}"),
    watch(MAPS, "resourceVersion=abc"),
    watch(MAPS, "timeoutSeconds=abc"),
    watch(MAPS, f"{SHORT}&labelSelector=a+in+b"),
    watch(MAPS, f"{SHORT}&fieldSelector=data.x%3Dy"),
    watch(MAPS, f"{SHORT}&sendInitialEvents=true"),
    watch(MAPS, f"{SHORT}&sendInitialEvents=true&resourceVersionMatch=Exact"),
    watch(MAPS, f"{SHORT}&sendInitialEvents=false"),
    watch(MAPS, f"{SHORT}&sendInitialEvents=maybe&resourceVersionMatch=NotOlderThan"),
    watch(MAPS, f"{SHORT}&resourceVersionMatch=NotOlderThan"),
    watch(MAPS, f"{SHORT}&resourceVersionMatch=Foo&sendInitialEvents=true"),
    watch(MAPS, f"{SHORT}&continue=abc"),
    watch(MAPS, SHORT, accept="text/html"),
    watch(f"{MAPS}/m", f"{SHORT}&fieldSelector=metadata.name%3Dother"),
    watch(DEFINITIONS, f"{SHORT}&fieldSelector=metadata.name%3Dnone"),
    watch("/api/v1/nothing", SHORT),
    watch("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", SHORT),
]
