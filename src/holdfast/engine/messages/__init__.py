"""Messages: published with a name and a key, kept for a while, and given to those that wait."""
