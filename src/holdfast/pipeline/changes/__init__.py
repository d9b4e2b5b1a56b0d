"""What a record changes in the tables. Pure: records in, rows out."""
