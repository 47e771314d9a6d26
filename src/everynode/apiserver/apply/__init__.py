"""Server-side apply as pure functions: field sets, managed fields, merging."""
