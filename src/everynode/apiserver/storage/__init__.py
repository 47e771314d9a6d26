"""Storage: the versioned object store, its change log, and persistence in SQLite."""
