"""Pods: their names, bodies, patches and lifecycle hooks, and pods that pull images ahead."""
