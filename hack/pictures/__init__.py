"""The pictures of the documentation, drawn from runs of the program and from measurements."""
