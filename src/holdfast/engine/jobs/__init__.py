"""Jobs: pieces of work that are submitted once, leased to workers, retried, and end exactly once."""
