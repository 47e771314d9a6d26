"""What an object may look like: types, field validation, OpenAPI schemas of custom resources."""
