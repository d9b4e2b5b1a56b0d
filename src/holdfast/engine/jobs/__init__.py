"""Jobs: work that is submitted once, leased to workers, retried, and ends exactly once."""
