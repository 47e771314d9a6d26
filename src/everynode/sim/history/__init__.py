"""History of a simulated cluster: commits, requests and snapshots."""
