"""Content distribution, as publishers, subscribers and administrators reach it."""
