"""Distribution: one partition's command to all, some or one of the others, in order and once."""
