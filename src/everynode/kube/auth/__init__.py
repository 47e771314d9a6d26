"""Kubeconfig files and credentials: which cluster to use, and as which user."""
