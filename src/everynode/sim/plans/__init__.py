"""Plans: the actions and faults of a simulated run, generated from a seed or written by hand."""
