"""Simulated kubelets: nodes, pods and containers as a kubelet reports them."""
