"""How a process becomes a member of a cluster: its folder, its key, its disk, its registration."""

import uuid
from pathlib import Path

import msgspec

from holdfast.belonging import belong, belonging_of, check_folder
from holdfast.cluster.carrying import Carrying
from holdfast.cluster.knowing import KnownChains
from holdfast.cluster.member import ClusterMember, Membership
from holdfast.config import DEFAULT_PARTITIONS, Config
from holdfast.errors import InvalidArgument
from holdfast.files import make_folder
from holdfast.journal.cluster.identity import begin_identity
from holdfast.journal.local import RealDisk
from holdfast.limits import CLUSTER_SILENT_TICKS_MAX, CLUSTER_TICK_MS
from holdfast.member_names import check_member_name
from holdfast.node import LocalNode
from holdfast.sequence.api import ClusterSettings, Coordination, Registered
from holdfast.sequence.opening import open_coordination
from holdfast.transport import ConnectionBounds, Identity, TcpAddress
from holdfast.transport.keys import MemberKey
from holdfast.transport.sockets import SocketTransport
from holdfast.transport.tls import Tls

PORT_MAX = 65_535
CLUSTER_BOUNDS = ConnectionBounds(
    tick_ms=CLUSTER_TICK_MS, silent_ticks_max=CLUSTER_SILENT_TICKS_MAX
)
NAME_DIGITS = 12  # of its public key: two members alike once in 10^14


async def open_member(folder: Path, config: Config) -> ClusterMember:
    """A member over a folder of this machine; its node serves when this returns."""
    check_name(folder, config.member)
    check_folder(folder)
    address = member_address(config.member_address)
    nonce = uuid.uuid4().hex
    coordination = open_coordination(
        config.cluster, nonce, ca=config.cluster_ca, certificate=config.cluster_certificate,
        key=config.cluster_key,
    )  # fmt: skip
    try:
        make_folder(folder)  # behind what checks the URL: a wrong one leaves nothing behind
        key = MemberKey.open(folder / "member.key")
        name = config.member or key.public.hex()[:NAME_DIGITS]
        settings = await settle(coordination, config)
        belong(folder, settings.id, name)
        await coordination.register(Registered(name, key.public.hex()))
        disk = await begin_identity(
            RealDisk(), str(folder), name, coordination, lambda: uuid.uuid4().hex
        )
        keys = {name: key.public}
        transport = SocketTransport(
            Identity(name, settings.id), bounds=CLUSTER_BOUNDS, tls=Tls(key, keys)
        )
        membership = Membership(name, nonce, settings, disk, address, config.member_url)
        member = ClusterMember(membership, coordination, transport, keys, folder)
        told = msgspec.structs.replace(config, partitions=settings.partitions)
        node = await LocalNode.open(folder, told, place=member.place, over=member.open_journal)
    except BaseException:
        await coordination.close()
        raise
    try:
        node.metrics.etcd.source = coordination
        member.carrying = Carrying(member, node, folder / "arriving")
        member.remembering = remembering = KnownChains(folder)
        for partition in range(1, settings.partitions + 1):
            remembering.learned(member.journal.chain(partition))
        member.journal.on_chain.append(remembering.learned)
        await member.begin(node, standbys=config.cluster_standbys)
    except BaseException:
        await member.close()
        raise
    return member


def check_name(folder: Path, name: str) -> None:
    """Before anything is made; a folder that has a name keeps it, however it was given."""
    found = belonging_of(folder)
    if name and (found is None or found.member != name):
        check_member_name(name, "member (--member)")


async def settle(coordination: Coordination, config: Config) -> ClusterSettings:
    """The cluster's settings, which its first member decides; refuses other ones."""
    wanted = ClusterSettings(uuid.uuid4().hex, config.partitions or DEFAULT_PARTITIONS)
    settings = await coordination.settle(wanted)
    if config.partitions not in (None, settings.partitions):
        raise InvalidArgument(
            f"Expected {config.partitions} partitions, but the cluster was made with"
            f" {settings.partitions}; the number cannot be changed"
        )
    return settings


def member_address(text: str) -> TcpAddress:
    """Where a member listens for others."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > PORT_MAX:
        raise InvalidArgument(
            f"Expected HOST:PORT for where other members reach this one, but found {text!r}",
            field="member_address",
        )
    return TcpAddress(host.strip("[]"), int(port))
