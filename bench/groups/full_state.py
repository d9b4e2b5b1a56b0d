"""What the same message takes in a protocol whose every message carries the state of all members.

The fields are those of the specification that groups began with: an epoch, the sender, a time, and
for each member its own and its shared partitions.
"""

from typing import Any

import msgspec

from holdfast.groups.state import GroupPartition, GroupState

_EPOCH = "8f14e45f-ceea-467f-a8f4-3b2c9d1e0a77"  # an epoch has a UUID there
_TIME = "2026-11-16T15:42:53.000Z"


def full_state(state: GroupState, sender: str) -> dict[str, Any]:
    """The whole state as one message."""
    return {
        "syncEpoch": _EPOCH,
        "taskID": sender,
        "messageTimestamp": _TIME,
        "connectorState": [_member_state(state, each) for each in sorted(state.members)],
    }


def json_bytes(state: GroupState, sender: str) -> int:
    """Compact JSON, as the specification shows it."""
    return len(msgspec.json.encode(full_state(state, sender)))


def msgpack_bytes(state: GroupState, sender: str) -> int:
    """The same in the encoding that we use."""
    return len(msgspec.msgpack.encode(full_state(state, sender)))


def _member_state(state: GroupState, member: str) -> dict[str, Any]:
    own = [state.partitions[token] for token in sorted(state.owned.get(member, ()))]
    return {
        "taskID": member,
        "stateTimestamp": _TIME,
        "data": {each.token: _partition(each) for each in own if not each.target},
        "share": {each.token: _partition(each) for each in own if each.target},
    }


def _partition(partition: GroupPartition) -> dict[str, Any]:
    fields = {
        "state": partition.status.name,
        "parents": list(partition.parents),
        "offset": partition.offset,
        "watermark": partition.watermark,
    }
    return fields | {"target": partition.target} if partition.target else fields
