"""The names of the reports, in the order in which they are shown; to know them loads nothing."""

NAMES = ("throughput", "backlog", "latency", "incidents", "partitions", "content")
