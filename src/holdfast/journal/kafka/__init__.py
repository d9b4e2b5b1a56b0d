"""The log in Kafka. Needs the extra: pip install 'holdfast[kafka]'."""

from holdfast.journal.kafka.journal import KafkaJournal

__all__ = ["KafkaJournal"]
