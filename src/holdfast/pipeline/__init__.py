"""The data pipeline on Spark: the journal becomes tables that can be asked."""
