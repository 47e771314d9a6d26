"""Long-running commands: their event loop, the API servers they run, simulated nodes."""
