"""A real Kubernetes on this machine: its programs, and a control plane made of them."""
