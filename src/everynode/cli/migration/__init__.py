"""Moving a DaemonSet between the two kinds without restarting a pod."""
