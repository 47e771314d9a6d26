"""In-place updates (R6): the difference of templates, the progress, and the next write."""
