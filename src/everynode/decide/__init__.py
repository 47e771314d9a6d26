"""What should happen: pure decisions from what was observed and the time."""
