"""Components of a cluster that are clients of its API: kubelets, scheduler and controllers."""
