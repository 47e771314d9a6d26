"""What `everynode doctor` reads of a cluster, and what it finds in it."""
