"""A member over the broker that a URL names. Kafka's clients are imported when one is used."""

from importlib.util import find_spec
from pathlib import Path

from holdfast.brokered.joining import join
from holdfast.brokered.member import BrokeredMember
from holdfast.config import Config
from holdfast.errors import Unavailable

_NEEDED = ("aiokafka", "confluent_kafka")


async def open_brokered(folder: Path, config: Config) -> BrokeredMember:
    """A member over the log that `journal` names; its node serves when this returns.

    Raises InvalidArgument if the URL or a setting is wrong, and Unavailable where the extra is not
    installed or no broker answers.
    """
    for name in _NEEDED:
        if find_spec(name) is None:
            raise Unavailable(f"{name} is not installed: pip install 'holdfast[kafka]'")
    from holdfast.brokered.kafka import open_kafka

    return await join(folder, config, open_kafka(config))
