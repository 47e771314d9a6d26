"""A Kubernetes in one process: API server, scheduler, garbage collector and simulated nodes."""
