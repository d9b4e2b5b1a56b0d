"""The messages of etcd's protocol, as far as they are needed, built when this is imported.

Names and numbers of fields are those of etcd's version 3 API, which 3.4 and later servers speak.
Fields that are not named here are skipped when they arrive.
"""

from collections.abc import Iterable
from typing import Any, TypeAlias

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from holdfast.sequence.keys import Guard, Holds, KeySpan, Put, Row, Write

Message: TypeAlias = Any
"""A protobuf message: its fields are known at run time only, and used in this module alone."""

# Each field: its number, its name and its type; * for a list, | for one of several alternatives.
_MESSAGES = {
    "ResponseHeader": "1 cluster_id uint64, 2 member_id uint64, 3 revision int64",
    "KeyValue": "1 key bytes, 3 mod_revision int64, 5 value bytes, 6 lease int64",
    "Event": "1 type int32, 2 kv KeyValue",
    "RangeRequest": "1 key bytes, 2 range_end bytes, 3 limit int64, 5 sort_order int32",
    "RangeResponse": "1 header ResponseHeader, 2 kvs *KeyValue",
    "PutRequest": "1 key bytes, 2 value bytes, 3 lease int64",
    "PutResponse": "1 header ResponseHeader",
    "DeleteRangeRequest": "1 key bytes, 2 range_end bytes",
    "DeleteRangeResponse": "1 header ResponseHeader",
    "Compare": "1 result int32, 2 target int32, 3 key bytes, 6 mod_revision |int64, 7 value |bytes",
    "RequestOp": "1 range |RangeRequest, 2 put |PutRequest, 3 delete |DeleteRangeRequest",
    "ResponseOp": "1 range |RangeResponse, 2 put |PutResponse, 3 delete |DeleteRangeResponse",
    "TxnRequest": "1 compare *Compare, 2 success *RequestOp, 3 failure *RequestOp",
    "TxnResponse": "1 header ResponseHeader, 2 succeeded bool, 3 responses *ResponseOp",
    "CompactionRequest": "1 revision int64, 2 physical bool",
    "CompactionResponse": "1 header ResponseHeader",
    "WatchCreateRequest": "1 key bytes, 2 range_end bytes, 3 start_revision int64",
    "WatchRequest": "1 create_request |WatchCreateRequest",
    "WatchResponse": (
        "1 header ResponseHeader, 3 created bool, 4 canceled bool, 5 compact_revision int64,"
        " 6 cancel_reason string, 11 events *Event"
    ),
    "LeaseGrantRequest": "1 ttl int64, 2 id int64",
    "LeaseGrantResponse": "1 header ResponseHeader, 2 id int64, 3 ttl int64",
    "LeaseRevokeRequest": "1 id int64",
    "LeaseRevokeResponse": "1 header ResponseHeader",
    "LeaseKeepAliveRequest": "1 id int64",
    "LeaseKeepAliveResponse": "1 header ResponseHeader, 2 id int64, 3 ttl int64",
    "AuthenticateRequest": "1 name string, 2 password string",
    "AuthenticateResponse": "1 header ResponseHeader, 2 token string",
    "StatusRequest": "",
    "StatusResponse": "1 header ResponseHeader, 2 version string, 3 db_size int64",
}
_EQUAL, _BY_MOD_REVISION, _BY_VALUE, _DESCENDING = 0, 2, 3, 2
_PACKAGE = "holdfast.etcd"


def _build() -> dict[str, type[Message]]:
    kind = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="holdfast/etcd.proto", package=_PACKAGE, syntax="proto3"
    )
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field in filter(None, fields.split(", ")):
            number, label, type_name = field.split()
            one = message.field.add(name=label, number=int(number), label=kind.LABEL_OPTIONAL)
            if type_name.startswith("*"):
                one.label = kind.LABEL_REPEATED
            elif type_name.startswith("|"):
                if not message.oneof_decl:
                    message.oneof_decl.add(name="one")
                one.oneof_index = 0
            type_name = type_name.lstrip("*|")
            if type_name in _MESSAGES:
                one.type, one.type_name = kind.TYPE_MESSAGE, f".{_PACKAGE}.{type_name}"
            else:
                one.type = kind.Type.Value(f"TYPE_{type_name.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
        for name in _MESSAGES
    }


_KINDS = _build()

# Each call: the path of the method, its request and its answer.
RANGE = ("/etcdserverpb.KV/Range", "RangeRequest", "RangeResponse")
TXN = ("/etcdserverpb.KV/Txn", "TxnRequest", "TxnResponse")
COMPACT = ("/etcdserverpb.KV/Compact", "CompactionRequest", "CompactionResponse")
WATCH = ("/etcdserverpb.Watch/Watch", "WatchRequest", "WatchResponse")
LEASE_GRANT = ("/etcdserverpb.Lease/LeaseGrant", "LeaseGrantRequest", "LeaseGrantResponse")
LEASE_REVOKE = ("/etcdserverpb.Lease/LeaseRevoke", "LeaseRevokeRequest", "LeaseRevokeResponse")
LEASE_KEEP_ALIVE = (
    "/etcdserverpb.Lease/LeaseKeepAlive",
    "LeaseKeepAliveRequest",
    "LeaseKeepAliveResponse",
)
AUTHENTICATE = ("/etcdserverpb.Auth/Authenticate", "AuthenticateRequest", "AuthenticateResponse")
STATUS = ("/etcdserverpb.Maintenance/Status", "StatusRequest", "StatusResponse")


def new(kind: str, **fields: object) -> Message:
    """A message of the table."""
    return _KINDS[kind](**fields)


def serialize(message: Message) -> bytes:
    """A message in the bytes that go over the wire."""
    return message.SerializeToString()


def parser(kind: str) -> Any:
    """Makes a message of bytes."""
    return _KINDS[kind].FromString


def span_request(span: KeySpan, prefix: str) -> Message:
    """Reads a span of keys under a prefix. Linearizable, which is etcd's default."""
    request = new("RangeRequest", **_ends(span, prefix))
    if span.is_last_only:
        request.limit, request.sort_order = 1, _DESCENDING
    return request


def spans_request(spans: Iterable[KeySpan], prefix: str) -> Message:
    """Reads several spans at one moment."""
    operations = [new("RequestOp", range=span_request(each, prefix)) for each in spans]
    return new("TxnRequest", success=operations)


def rows_of(response: Message, prefix: str) -> list[Row]:
    """The rows of an answer, without the prefix."""
    return [
        Row(
            bytes(each.key).decode(errors="replace").removeprefix(prefix),
            each.value,
            each.mod_revision,
        )
        for each in response.kvs
    ]


def write_request(write: Write, prefix: str, lease: int) -> Message:
    """A guarded transaction."""
    deletes = [
        new("RequestOp", delete=new("DeleteRangeRequest", **_ends(span, prefix)))
        for span in write.deletes
    ]
    puts = [new("RequestOp", put=_put(put, prefix, lease)) for put in write.puts]
    compares = [_compare(guard, prefix) for guard in write.guards]
    return new("TxnRequest", compare=compares, success=deletes + puts)


def watch_request(span: KeySpan, prefix: str) -> Message:
    """Watches a span of keys under a prefix, from now on."""
    create = new("WatchCreateRequest", **_ends(span, prefix))
    return new("WatchRequest", create_request=create)


def _put(put: Put, prefix: str, lease: int) -> Message:
    return new(
        "PutRequest",
        key=(prefix + put.key).encode(),
        value=put.value,
        lease=lease if put.is_leased else 0,
    )


def _compare(guard: Guard, prefix: str) -> Message:
    key = (prefix + guard.key).encode()
    if isinstance(guard, Holds):
        return new("Compare", result=_EQUAL, target=_BY_VALUE, key=key, value=guard.value)
    return new(
        "Compare", result=_EQUAL, target=_BY_MOD_REVISION, key=key, mod_revision=guard.revision
    )


def _ends(span: KeySpan, prefix: str) -> dict[str, object]:
    end = b"" if span.end is None else (prefix + span.end).encode()
    return {"key": (prefix + span.first).encode(), "range_end": end}
