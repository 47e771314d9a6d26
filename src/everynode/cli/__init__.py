"""The command line: one module per command, and folders for what several of them use."""
