"""Questions about lists: selectors, pages, resource versions and representations."""

from __future__ import annotations

from urllib.parse import quote

from everynode.kube.requests import MERGE_PATCH as M
from tests.agreement.about_definitions import WIDGETS, definition
from tests.agreement.question import (
    CLASSES,
    DEFINITIONS,
    EVENTS,
    LEASES,
    MAPS,
    NODES,
    PODS,
    SETS,
    SPACE,
    TABLE,
    Question,
    ask,
    config_map,
    daemonset,
    get,
    meta,
    pod,
)

OLD_TABLE = TABLE.replace("v=v1", "v=v1beta1")
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
METADATA_LIST = METADATA.replace("Metadata;", "MetadataList;")


def labelled(selector: str, path: str = MAPS) -> Question:
    return get(f"{path}?labelSelector={quote(selector)}")


def fielded(selector: str, path: str = MAPS) -> Question:
    return get(f"{path}?fieldSelector={quote(selector)}")


SELECTED = [
    ask("POST", MAPS, config_map("a", labels={"colour": "red", "size": "1", "empty": ""})),
    ask("POST", MAPS, config_map("b", labels={"colour": "blue", "size": "20"})),
    ask("POST", MAPS, config_map("c", labels={"colour": "green", "NS/own": "x"})),
    ask("POST", MAPS, config_map("d")),
    *(
        labelled(selector)
        for selector in (
            "colour=red",
            "colour==red",
            "colour!=red",
            "colour in (red, blue)",
            "colour notin (red,blue)",
            "colour",
            "!colour",
            "colour,size!=1",
            "empty=",
            "empty in ()",
            "size>1",
            "size<5",
            "size>x",
            "NS/own=x",
            " colour = red ",
            ",",
            "colour=red,",
            "colour in red",
            "colour in (red",
            "colour=re d",
            "=x",
            "-bad=x",
            "colour=-bad",
            "colour=red!",
            "!",
            "a b",
            f"{'k' * 64}=v",
            f"k={'v' * 64}",
        )
    ),
    labelled("NS/own=x", "/api/v1/configmaps"),
    *(
        fielded(selector)
        for selector in (
            "metadata.name=a",
            "metadata.name==a",
            "metadata.name!=a",
            "metadata.name=a,metadata.namespace=NS",
            "metadata.name=a,metadata.name=b",
            "metadata.namespace!=NS",
            "metadata.name",
            "metadata.name=",
            "metadata.name in (a)",
            "data.x=y",
            "metadata.uid=x",
        )
    ),
    fielded("metadata.name=a,metadata.namespace=NS", "/api/v1/configmaps"),
    ask("POST", PODS, pod("one", nodeName="n1", restartPolicy="Never", hostNetwork=True)),
    ask("POST", PODS, pod("two", schedulerName="mine")),
    ask("PATCH", f"{PODS}/one/status", {"status": {"phase": "Running", "podIP": "1.2.3.4"}}, M),
    *(
        fielded(selector, PODS)
        for selector in (
            "spec.nodeName=n1",
            "spec.nodeName=",
            "spec.nodeName!=n1",
            "spec.restartPolicy=Never",
            "spec.schedulerName=mine",
            "spec.serviceAccountName=robot",
            "spec.hostNetwork=true",
            "status.phase=Running",
            "status.phase!=Failed,status.phase!=Succeeded,status.phase!=Running",
            "status.podIP=1.2.3.4",
            "status.nominatedNodeName=",
            "spec.hostname=x",
            "status.reason=x",
        )
    ),
    ask("POST", SETS, daemonset("d")),
    fielded("metadata.name=d", SETS),
    fielded("spec.paused=true", SETS),
    fielded("status.numberReady=0", SETS),
    ask("POST", f"{SPACE}/secrets", {**meta("s"), "type": "mine", "stringData": {"a": "b"}}),
    fielded("type=mine", f"{SPACE}/secrets"),
    fielded("type!=mine", f"{SPACE}/secrets"),
    fielded("data.a=b", f"{SPACE}/secrets"),
    fielded("metadata.name=NS,status.phase=Active", "/api/v1/namespaces"),
    fielded("metadata.name=NS,status.phase=Terminating", "/api/v1/namespaces"),
    fielded("spec.x=y", "/api/v1/namespaces"),
    ask("POST", NODES, {**meta("NS-one"), "spec": {"unschedulable": True}}),
    ask("POST", NODES, meta("NS-two")),
    fielded("metadata.name=NS-one,spec.unschedulable=true", NODES),
    fielded("metadata.name=NS-two,spec.unschedulable=false", NODES),
    fielded("spec.podCIDR=x", NODES),
    fielded("value=1", CLASSES),
    fielded("spec.holderIdentity=x", LEASES),
    ask(
        "POST",
        EVENTS,
        {
            **meta("e"),
            "involvedObject": {"kind": "Pod", "namespace": "NS", "name": "one", "uid": "u"},
            "reason": "Because",
            "type": "Normal",
            "source": {"component": "us"},
            "reportingComponent": "me",
        },
    ),
    *(
        fielded(selector, EVENTS)
        for selector in (
            "involvedObject.kind=Pod,involvedObject.name=one",
            "involvedObject.uid=u,involvedObject.namespace=NS",
            "reason=Because,type=Normal",
            "source=us",
            "reportingComponent=me",
            "involvedObject.fieldPath=",
            "message=x",
        )
    ),
    ask("DELETE", f"{NODES}/NS-one"),
    ask("DELETE", f"{NODES}/NS-two"),
]

LIST_VERSION = {"THEN": "metadata.resourceVersion"}
PAGES = [
    *(ask("POST", MAPS, config_map(name, labels={"kind": "page"})) for name in "abcde"),
    get(f"{MAPS}?limit=2", keep={"TOKEN": "metadata.continue"}),
    get(f"{MAPS}?limit=2&continue=<TOKEN>", keep={"TOKEN2": "metadata.continue"}),
    get(f"{MAPS}?limit=2&continue=<TOKEN2>"),
    get(f"{MAPS}?continue=<TOKEN>"),
    get(f"{MAPS}?limit=2&labelSelector=kind%3Dpage", keep={"CHOSEN": "metadata.continue"}),
    get(f"{MAPS}?limit=2&labelSelector=kind%3Dpage&continue=<CHOSEN>"),
    get(f"{MAPS}?limit=5"),
    get(f"{MAPS}?limit=0"),
    get(f"{MAPS}?limit=-1"),
    get(f"{MAPS}?limit=abc"),
    get(f"{MAPS}?limit=2&continue=<TOKEN>&resourceVersion=0"),
    get(f"{MAPS}?limit=2&continue=<TOKEN>&resourceVersion=1"),
    get(
        f"{MAPS}?limit=2&continue=<TOKEN>&resourceVersionMatch=Exact",
        differs="the real one puts a second fault beside it",
    ),
    get(f"{MAPS}?limit=2&continue=nonsense", differs="what a token looks like is each one's own"),
    # Of a list that has begun, the rest is as it was when it began.
    get(MAPS, keep=LIST_VERSION),
    ask("DELETE", f"{MAPS}/c"),
    ask("POST", MAPS, config_map("f")),
    ask("PATCH", f"{MAPS}/d", {"data": {"x": "y"}}, M),
    get(f"{MAPS}?limit=2&continue=<TOKEN>"),
    get(f"{MAPS}?resourceVersion=<THEN>&resourceVersionMatch=Exact"),
    get(f"{MAPS}?resourceVersion=<THEN>&resourceVersionMatch=Exact&limit=2"),
    get(f"{MAPS}?resourceVersion=<THEN>&limit=2"),
    get(f"{MAPS}?resourceVersion=<THEN>&resourceVersionMatch=NotOlderThan"),
    get(f"{MAPS}?resourceVersion=<THEN>"),
    get(f"{MAPS}?resourceVersion=0"),
    get(f"{MAPS}?resourceVersion=0&limit=2"),
    get(f"{MAPS}?resourceVersion=0&resourceVersionMatch=NotOlderThan"),
    get(f"{MAPS}?resourceVersionMatch=NotOlderThan"),
    get(f"{MAPS}?resourceVersion=<THEN>&resourceVersionMatch=Foo"),
    get(f"{MAPS}?resourceVersion=abc"),
    get(f"{MAPS}?resourceVersion=-1"),
    get(f"{MAPS}?sendInitialEvents=true"),
    get(f"{MAPS}/a?resourceVersion=<THEN>"),
    get(f"{MAPS}/a?resourceVersion=0"),
    get(f"{MAPS}/a?resourceVersion=abc"),
    get(f"{MAPS}?timeoutSeconds=1"),
    get(f"{MAPS}?unheard=of"),
]

FORMS = [
    ask("POST", MAPS, config_map("a", {"x": "1"}, labels={"l": "v"})),
    ask("POST", SETS, daemonset("d")),
    ask("POST", PODS, pod("p", nodeName="n1")),
    ask("POST", LEASES, {**meta("l"), "spec": {"holderIdentity": "me"}}),
    *(
        get(f"{path}{query}", accept=accept)
        for path in (MAPS, f"{MAPS}/a")
        for query in ("", "?includeObject=Object", "?includeObject=None", "?includeObject=Metadata")
        for accept in (TABLE, OLD_TABLE)
    ),
    get(f"{MAPS}?includeObject=Foo", accept=TABLE),
    get(f"{MAPS}?limit=1&includeObject=None", accept=TABLE),
    get(f"{MAPS}/none", accept=TABLE),
    get(f"{PODS}/p", accept=TABLE),
    get(LEASES, accept=TABLE),
    get(f"{SPACE}", accept=TABLE),
    *(
        get(path, accept=accept)
        for path in (MAPS, f"{MAPS}/a", SETS)
        for accept in (METADATA, METADATA_LIST)
    ),
    *(
        get(f"{MAPS}/a", accept=accept)
        for accept in (
            "",
            "*/*",
            "application/*",
            "application/json, */*",
            f"{TABLE},application/json",
            f"application/json,{TABLE}",
            "application/json;as=Table;v=v2;g=meta.k8s.io",
            "application/json;as=Table;v=v2;g=meta.k8s.io,application/json",
            "application/json;as=Foo;v=v1;g=meta.k8s.io",
            "text/html",
            "text/html,application/json",
            "application/json;stream=watch",
        )
    ),
    get(
        f"{MAPS}/a",
        accept="application/vnd.kubernetes.protobuf,application/json",
        differs="ours answers in JSON to clients that accept it",
    ),
]

# What is asked when the history that it needs is gone; a write is larger than what ours remembers.
REST = {"REST": "metadata.continue"}
OLD_WATCH = "?watch=true&resourceVersion=1&timeoutSeconds=1"
FORGOTTEN = [
    *(ask("POST", MAPS, config_map(name, {"x": "y" * 4000})) for name in "abcde"),
    get(f"{MAPS}?limit=2", keep={"TOKEN": "metadata.continue", **LIST_VERSION}),
    ask("DELETE", f"{MAPS}/c"),
    ask("PATCH", f"{MAPS}/d", {"data": {"x": "z" * 4000}}, M),
    get(f"{MAPS}?limit=2&continue=<TOKEN>", until=("code", 410), keep=REST),
    get(f"{MAPS}?limit=1&continue=<REST>", keep=REST),
    get(f"{MAPS}?limit=1&continue=<REST>"),
    get(f"{MAPS}?resourceVersion=<THEN>&resourceVersionMatch=Exact", until=("code", 410)),
    get(f"{MAPS}?resourceVersion=<THEN>&limit=2"),
    get(f"{MAPS}?resourceVersion=<THEN>"),
    get(f"{MAPS}/a?resourceVersion=<THEN>"),
    # The real one remembers all of a kind since it serves it; ours has forgotten the maps.
    ask("POST", DEFINITIONS, definition(), differs="the real one takes its time"),
    get(WIDGETS, until=("kind", "WidgetList"), only="items"),
    get(f"{WIDGETS}{OLD_WATCH}", instead=f"{MAPS}{OLD_WATCH}"),
]
