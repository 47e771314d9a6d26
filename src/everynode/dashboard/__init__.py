"""The page that shows rollouts in a browser: what it is sent, and who may see it."""
