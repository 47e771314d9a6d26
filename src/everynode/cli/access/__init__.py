"""How a command reaches a cluster: connection, kubeconfig, prerequisites."""
