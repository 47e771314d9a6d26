"""What the world looks like: typed partial objects and the rules of the Kubernetes API."""
