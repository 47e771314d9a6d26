"""Controller: observes, decides, writes, and waits for its own writes before deciding again."""
