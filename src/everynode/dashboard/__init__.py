"""The page that shows rollouts in a browser: its server, its data, and access to it."""
