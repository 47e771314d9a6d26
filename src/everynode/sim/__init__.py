"""What if: the same controller and cluster on virtual time, with faults, reproducible by seed."""
