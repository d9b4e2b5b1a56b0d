"""The topics of content distribution, read beside the records.

The stream of Spark knows a log by a number. Those of the records have the numbers of their
partitions; each of these has one that no partition can have.
"""

from typing import Final

from holdfast.content.topics import ContentTopic

STREAMS: Final = {
    5_001: ContentTopic.PACKAGES,
    5_002: ContentTopic.STATUSES,
    5_003: ContentTopic.DISCOVERIES,
}
"""By number; it is in the names of the tables' files and never changes."""

ONLY_PARTITION: Final = 1  # of each of them


def log_of(number: int, records: str) -> tuple[str, int]:
    """The topic and partition that a number stands for; `records` is the topic of the records."""
    stream = STREAMS.get(number)
    return (records, number) if stream is None else (stream.topic, ONLY_PARTITION)
