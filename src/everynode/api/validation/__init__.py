"""Whether an object is right, as a list of faults that name the field and say why."""

from everynode.api.validation.daemonset import validate_daemonset, validate_update
from everynode.api.validation.faults import summarise
from everynode.api.validation.metadata import check_metadata, check_metadata_update
from everynode.api.validation.shape import check_shape, unknown_fields
from everynode.api.validation.template import validate_pod, validate_template

__all__ = [
    "check_metadata",
    "check_metadata_update",
    "check_shape",
    "summarise",
    "unknown_fields",
    "validate_daemonset",
    "validate_pod",
    "validate_template",
    "validate_update",
]
