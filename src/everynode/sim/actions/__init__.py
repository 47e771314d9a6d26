"""Actions: what users, nodes, processes and servers do in a simulated cluster."""
