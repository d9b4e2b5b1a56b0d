"""The command line: one file a group of verbs. Heavy imports stay inside, so help is instant."""
