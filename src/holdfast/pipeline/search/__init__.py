"""Looking into the tables: one row by its key, or a page of those that meet a filter."""
