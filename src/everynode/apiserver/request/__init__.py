"""From bytes to an understood request: path, headers, timeout and body."""
