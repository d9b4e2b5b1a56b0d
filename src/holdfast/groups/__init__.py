"""Groups: members that share partitions of a name, by a protocol over one ordered log."""
