"""Simulator: the real controller and cluster on virtual time, with faults, reproducible by seed."""
