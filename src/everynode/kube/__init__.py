"""Kubernetes client: requests as values, transports, list and watch, caches."""
