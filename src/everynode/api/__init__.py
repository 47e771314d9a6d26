"""Kubernetes API: typed partial objects, and the API's rules for defaults and validation."""
