"""Reports: what the tables say about the work, as small tables and as pictures."""
