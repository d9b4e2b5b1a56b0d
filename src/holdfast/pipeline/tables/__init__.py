"""The tables on disk: Parquet files, named in the log of a Delta table."""
