"""One module per REST verb, and the subresources."""
