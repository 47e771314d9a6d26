"""What runs behind the API: kubelets, scheduler, garbage collector and the life of nodes."""
