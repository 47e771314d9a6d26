"""Validation of objects: field errors as the API server reports them."""

from everynode.api.validation.daemonset import validate_daemonset, validate_update
from everynode.api.validation.field_errors import summarise
from everynode.api.validation.field_types import check_field_types, unknown_fields
from everynode.api.validation.metadata import check_metadata, check_metadata_update
from everynode.api.validation.template import validate_pod, validate_template

__all__ = [
    "check_field_types",
    "check_metadata",
    "check_metadata_update",
    "summarise",
    "unknown_fields",
    "validate_daemonset",
    "validate_pod",
    "validate_template",
    "validate_update",
]
