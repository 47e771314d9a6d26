"""How we talk to Kubernetes: requests as values, transports, list and watch, caches."""
