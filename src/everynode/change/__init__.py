"""How one DaemonSet is changed: edits, the revision to go back to, and the write."""
