"""Choosing rows: a filter is checked once, and then said in SQL, to Spark, or to a file's stats."""
