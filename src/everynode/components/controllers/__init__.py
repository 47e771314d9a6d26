"""The controllers of a control plane: garbage collection, namespaces, nodes, evictions."""
