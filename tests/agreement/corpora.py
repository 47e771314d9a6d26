"""All questions, by what they are about; each list is one conversation in its own namespace."""

from __future__ import annotations

from typing import Final

from tests.agreement import (
    about_arrivals,
    about_contents,
    about_daemonsets,
    about_definitions,
    about_deletes,
    about_fields,
    about_forms,
    about_lists,
    about_patches,
    about_pods,
    about_policies,
    about_refusals,
    about_scale,
    about_stored,
    about_watches,
)
from tests.agreement.question import Question

CORPORA: Final[dict[str, list[Question]]] = {
    "pods": [*about_pods.NEW_PODS, *about_pods.CHANGED_PODS, *about_pods.DELETED_PODS],
    "daemonsets": about_daemonsets.DAEMONSETS,
    "odd contents": about_contents.CONTENTS,
    "odd definitions": [*about_definitions.FINE, *about_definitions.ODD],
    "advanced daemonsets": about_daemonsets.ADVANCED_SETS,
    "stored kinds": about_stored.STORED,
    "scales": about_scale.SCALED,
    "applied scales": about_scale.APPLIED,
    "scales applied after updates": about_scale.APPLIED_AFTER_UPDATES,
    "policies": about_policies.KEPT,
    "selectors": about_lists.SELECTED,
    "pages and points in time": about_lists.PAGES,
    "tables and other forms": about_lists.FORMS,
    "other forms of writes": about_forms.WRITTEN,
    "versions of writes": about_forms.VERSIONS,
    "times of requests": about_forms.TIMES,
    "JSON patches": about_patches.JSON_PATCHES,
    "merge patches": about_patches.MERGE_PATCHES,
    "strategic patches": about_patches.STRATEGIC_PATCHES,
    "server-side apply": about_patches.APPLIES,
    "deletes": about_deletes.DELETES,
    "unknown fields": about_fields.UNKNOWN,
    "names and generations": about_fields.NAMES,
    "protobuf": about_fields.PROTOBUFS,
    "custom kinds": about_definitions.DEFINED,
    "refusals": about_refusals.REFUSALS,
    "odd addresses": about_arrivals.ADDRESSES,
    "odd numbers": about_arrivals.ODD_NUMBERS,
    "odd tokens": about_arrivals.TOKENS,
    "odd graces": about_arrivals.GRACES,
    "odd bodies": about_arrivals.ODD_BODIES,
    "watches that end": about_watches.ENDED,
}
