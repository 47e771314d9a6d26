"""The loop: observe, decide, apply, and see our own writes before deciding again."""
