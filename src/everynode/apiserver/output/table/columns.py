"""Table columns of each resource, and the function that makes its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from everynode.apiserver.output.table import cells
from everynode.apiserver.output.table.cells import Row
from everynode.apiserver.output.table.event import event_row
from everynode.apiserver.output.table.jsonpath import PathError, compile_path, custom_cell
from everynode.apiserver.output.table.pod import pod_row

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Column:
    """One column; those with a priority above zero are shown in wide output only."""

    name: str
    type: str = "string"
    format: str = ""
    priority: int = 0
    description: str = ""

    def definition(self) -> Object:
        """Return the column as a TableColumnDefinition."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a resource, and the function that makes the row of an object."""

    columns: tuple[Column, ...]
    row: Callable[[Object, float], Row]


_NAME: Final = Column("Name", format="name")


def _columns(
    *names: str, wide: Sequence[str] = (), integers: Sequence[str] = ()
) -> tuple[Column, ...]:
    shown = [Column(name, "integer" if name in integers else "string") for name in names]
    return (_NAME, *shown, *(Column(name, priority=1) for name in wide))


_CONTAINERS: Final = ("Containers", "Images", "Selector")
_SUBJECTS: Final = ("Users", "Groups", "ServiceAccounts")
_DAEMONSET_NUMBERS: Final = ("Desired", "Current", "Ready", "Up-to-date", "Available")
_EVENT: Final = (
    Column("Last Seen"),
    Column("Type"),
    Column("Reason"),
    Column("Object"),
    Column("Subobject", priority=1),
    Column("Source", priority=1),
    Column("Message"),
    Column("First Seen", priority=1),
    Column("Count", priority=1),
    Column("Name", format="name", priority=1),
)

# Resources without columns of their own show the creation time.
_GENERIC_LAYOUT: Final = Layout((_NAME, Column("Created At", "date")), cells.generic_row)

_LAYOUTS: Final[dict[str, Layout]] = {
    "pods": Layout(
        _columns(
            "Ready",
            "Status",
            "Restarts",
            "Age",
            wide=("IP", "Node", "Nominated Node", "Readiness Gates"),
        ),
        pod_row,
    ),
    "nodes": Layout(
        _columns(
            "Status",
            "Roles",
            "Age",
            "Version",
            wide=("Internal-IP", "External-IP", "OS-Image", "Kernel-Version", "Container-Runtime"),
        ),
        cells.node_row,
    ),
    "namespaces": Layout(_columns("Status", "Age"), cells.namespace_row),
    "events": Layout(_EVENT, event_row),
    "events.events.k8s.io": Layout(_EVENT, event_row),
    "configmaps": Layout(_columns("Data", "Age"), cells.config_map_row),
    "secrets": Layout(_columns("Type", "Data", "Age"), cells.secret_row),
    "customresourcedefinitions.apiextensions.k8s.io": Layout(
        (
            *_columns("Scope", "Versions"),
            Column("Created At", "date"),
            *(Column(name, priority=1) for name in ("Group", "Kind", "ShortNames")),
            Column("Established", "boolean", priority=1),
        ),
        cells.definition_row,
    ),
    "serviceaccounts": Layout(_columns("Age"), cells.aged_row),
    "services": Layout(
        _columns("Type", "Cluster-IP", "External-IP", "Port(s)", "Age", wide=("Selector",)),
        cells.service_row,
    ),
    "daemonsets.apps": Layout(
        _columns(
            *_DAEMONSET_NUMBERS,
            "Node Selector",
            "Age",
            wide=_CONTAINERS,
            integers=_DAEMONSET_NUMBERS,
        ),
        cells.daemon_set_row,
    ),
    "deployments.apps": Layout(
        _columns("Ready", "Up-to-date", "Available", "Age", wide=_CONTAINERS), cells.deployment_row
    ),
    "scales.autoscaling": Layout(
        (
            Column("Name"),
            Column("Desired", "integer"),
            Column("Available", "integer"),
            Column("Age"),
        ),
        cells.scale_row,
    ),
    "controllerrevisions.apps": Layout(
        _columns("Controller", "Revision", "Age"), cells.revision_row
    ),
    "leases.coordination.k8s.io": Layout(_columns("Holder", "Age"), cells.lease_row),
    "priorityclasses.scheduling.k8s.io": Layout(
        (
            _NAME,
            Column("Value", "integer"),
            Column("Global-Default", "boolean"),
            Column("Age"),
            Column("PreemptionPolicy"),
        ),
        cells.priority_class_row,
    ),
    "poddisruptionbudgets.policy": Layout(
        _columns(
            "Min Available",
            "Max Unavailable",
            "Allowed Disruptions",
            "Age",
            integers=("Allowed Disruptions",),
        ),
        cells.disruption_budget_row,
    ),
    "resourcequotas": Layout(_columns("Request", "Limit", "Age"), cells.quota_row),
    "flowschemas.flowcontrol.apiserver.k8s.io": Layout(
        _columns(
            "PriorityLevel",
            "MatchingPrecedence",
            "DistinguisherMethod",
            "Age",
            "MissingPL",
        ),
        cells.flow_schema_row,
    ),
    "networkpolicies.networking.k8s.io": Layout(
        _columns("Pod-Selector", "Age"), cells.network_policy_row
    ),
    "rolebindings.rbac.authorization.k8s.io": Layout(
        _columns("Role", "Age", wide=_SUBJECTS), cells.binding_row
    ),
    "clusterrolebindings.rbac.authorization.k8s.io": Layout(
        _columns("Role", "Age", wide=_SUBJECTS), cells.binding_row
    ),
}


def layout_of(resource: str) -> Layout:
    """Return the layout of a built-in resource, named as in `daemonsets.apps`."""
    return _LAYOUTS.get(resource, _GENERIC_LAYOUT)


def custom_layout(columns: Sequence[Mapping[str, Any]]) -> Layout:
    """Return the layout of the additionalPrinterColumns of a CRD; without any, the age."""
    if not columns:
        columns = [{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]
    shown, finders = [_NAME], []
    for column in columns:
        path = column.get("jsonPath", "")
        try:
            finders.append((compile_path(path), column.get("type", "string")))
        except PathError:
            break  # as in kube-apiserver: columns after an invalid path are not shown
        shown.append(
            Column(
                column.get("name", ""),
                column.get("type", "string"),
                column.get("format", ""),
                column.get("priority", 0),
                column.get("description", ""),
            )
        )

    def row(obj: Object, now: float) -> Row:
        found = [custom_cell(find(obj), kind, now) for find, kind in finders]
        return Row([cells.name_of(obj), *found])

    return Layout(tuple(shown), row)
