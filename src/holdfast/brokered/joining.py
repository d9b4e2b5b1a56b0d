"""How a process becomes a member over a broker: its folder, its key, the log, the group."""

import contextlib
import os
from pathlib import Path

import msgspec

from holdfast.belonging import belong, check_folder
from holdfast.brokered.member import BrokeredIdentity, BrokeredMember, OpenKnowing
from holdfast.cluster.joining import CLUSTER_BOUNDS, NAME_DIGITS, check_name, member_address
from holdfast.config import Config
from holdfast.engine.kernel.runner import TOPIC
from holdfast.files import make_folder
from holdfast.folders import create_records
from holdfast.groups.journal_log import JournalSyncLog
from holdfast.journal import Journal
from holdfast.journal.local import RealDisk
from holdfast.logs import log
from holdfast.node import LocalNode
from holdfast.transport import Identity
from holdfast.transport.keys import MemberKey
from holdfast.transport.sockets import SocketTransport
from holdfast.transport.tls import Tls

SYNC_TOPIC = "sync"
LOCK_FILE = "lock"


class BrokeredLog(msgspec.Struct, frozen=True):
    """A log that somebody else keeps, and a group of those who write it."""

    journal: Journal
    id: str  # of the broker and the log: what members have in common
    url: str  # without secrets
    open_membership: OpenKnowing


async def join(folder: Path, config: Config, broker: BrokeredLog) -> BrokeredMember:
    """A member over a folder of this machine; closing it closes the journal."""
    journal = broker.journal
    async with contextlib.AsyncExitStack() as undo:
        undo.push_async_callback(journal.close)
        check_name(folder, config.member)
        check_folder(folder)
        address = member_address(config.member_address)
        make_folder(folder)
        lock = RealDisk().lock(str(folder / LOCK_FILE), b"pid %d" % os.getpid())
        undo.callback(lock.release)
        key = MemberKey.open(folder / "member.key")
        name = config.member or key.public.hex()[:NAME_DIGITS]
        belong(folder, broker.id, name)
        create_records(journal, config)
        partitions = journal.topics()[TOPIC]
        identity = BrokeredIdentity(
            name, broker.id, broker.url, key.public, address, partitions, config.member_url
        )
        keys = {name: key.public}
        transport = SocketTransport(
            Identity(name, broker.id), bounds=CLUSTER_BOUNDS, tls=Tls(key, keys)
        )
        member = BrokeredMember(identity, transport, keys, folder)
        member.on_closed.append(lock.release)

        async def elsewhere(*_: object) -> Journal:
            return journal

        if not config.snapshot_store:
            log.warning(
                "no snapshot store: the log is never truncated, and a member without state reads"
                " all of it",
                advice="set snapshot_store to a folder or bucket that all members can reach",
            )
        told = msgspec.structs.replace(config, partitions=partitions)
        node = await LocalNode.open(folder, told, place=member.place, elsewhere=elsewhere)
        undo.pop_all()
    try:
        sync_log = JournalSyncLog(journal, SYNC_TOPIC)
        await member.begin(node, sync_log, broker.open_membership, standbys=config.cluster_standbys)
    except BaseException:
        await node.close()
        lock.release()
        raise
    return member
