"""The tests' own broker does what the tests rely on."""

import pytest
from bench.peers.kafka import KafkaServer

pytest.importorskip("confluent_kafka")
from confluent_kafka.admin import AdminClient, NewTopic

pytestmark = pytest.mark.xdist_group("kafka")


def test_a_broker_that_was_killed_has_its_topics_when_it_runs_again(kafka: KafkaServer) -> None:
    quiet = {"bootstrap.servers": kafka.endpoint, "log_level": 0}
    admin = AdminClient(quiet)
    admin.create_topics([NewTopic("kept", 2, 1)])["kept"].result(timeout=30)
    kafka.kill()
    kafka.run()
    found = AdminClient(quiet).list_topics(timeout=30)
    assert found.cluster_id == kafka.cluster_id
    assert len(found.topics["kept"].partitions) == 2
