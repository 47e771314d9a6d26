"""Real Kubernetes on this machine: binaries, a control plane on loopback, a real node."""
