"""What only sockets have: files, rights, ports, strangers."""

import asyncio
import logging
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop
from tests.transport.ways import CLUSTER, ECHO, HASTY, QUICK, Script, until

from holdfast.errors import InvalidArgument, Unavailable
from holdfast.limits import STRANGERS_MAX
from holdfast.transport import ConnectionBounds, Identity, TcpAddress, UnixAddress
from holdfast.transport.keys import MemberKey
from holdfast.transport.sockets import SocketTransport
from holdfast.transport.tls import Tls


def transport(
    member: str, bounds: ConnectionBounds = QUICK, tls: Tls | None = None
) -> SocketTransport:
    return SocketTransport(Identity(member, CLUSTER), bounds=bounds, tls=tls)


def test_only_the_user_of_the_node_may_open_its_socket(tmp_path: Path) -> None:
    async def story() -> None:
        address = UnixAddress(str(tmp_path / "b.sock"))
        listener = await transport("b").listen(address, Script())
        rights.append(stat.S_IMODE(os.stat(address.path).st_mode))  # noqa: PTH116
        await listener.close()

    rights: list[int] = []
    asyncio.run(story())
    assert rights == [0o600]
    assert not (tmp_path / "b.sock").exists()


def test_the_socket_of_a_member_that_is_gone_is_replaced_and_a_live_one_is_not(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "b.sock")
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(path)

    async def story() -> None:
        listener = await transport("b").listen(UnixAddress(path), Script())
        with pytest.raises(Unavailable, match="another process does"):
            await transport("b").listen(UnixAddress(path), Script())
        connection = await transport("a").connect(UnixAddress(path), "b", Script())
        assert await connection.call(ECHO, b"x") == b"x"
        await listener.close()

    asyncio.run(story())


def test_a_file_that_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "b.sock").write_text("mine")

    async def story() -> None:
        with pytest.raises(InvalidArgument, match="found a file"):
            await transport("b").listen(UnixAddress(str(tmp_path / "b.sock")), Script())

    asyncio.run(story())
    assert (tmp_path / "b.sock").read_text() == "mine"


def test_a_path_that_is_too_long_is_refused_by_name(tmp_path: Path) -> None:
    async def story() -> None:
        with pytest.raises(InvalidArgument, match="UNIX_PATH_BYTES_MAX"):
            await transport("b").listen(UnixAddress(str(tmp_path / ("x" * 108))), Script())

    asyncio.run(story())


def test_beyond_this_machine_there_is_nothing_without_tls() -> None:
    async def story() -> None:
        for address in (TcpAddress("0.0.0.0", 0), TcpAddress("192.0.2.1", 7_000)):
            with pytest.raises(InvalidArgument, match="without TLS"):
                await transport("b").listen(address, Script())
            with pytest.raises(InvalidArgument, match="without TLS"):
                await transport("a").connect(address, "b", Script())

    asyncio.run(story())


def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    async def story() -> None:
        listener = await transport("b").listen(TcpAddress("127.0.0.1", 0), Script())
        with pytest.raises(Unavailable, match=str(listener.address)):
            await transport("b").listen(listener.address, Script())
        await listener.close()

    asyncio.run(story())


def test_strangers_are_taken_up_to_a_bound_and_do_not_keep_members_out(tmp_path: Path) -> None:
    async def story() -> None:
        address = UnixAddress(str(tmp_path / "b.sock"))
        listener = await transport("b", HASTY).listen(address, Script())
        strangers = [
            await asyncio.open_unix_connection(address.path) for _ in range(STRANGERS_MAX + 5)
        ]
        async with asyncio.timeout(5):  # those beyond the bound at once, the others after a while
            for reader, writer in strangers:
                assert await reader.read() == b""
                writer.close()
        connection = await transport("a").connect(address, "b", Script())
        assert await connection.call(ECHO, b"x") == b"x"
        await listener.close()

    asyncio.run(story())


@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_handshakes_that_fail_are_told_and_do_not_keep_members_out(
    loop_factory: Callable[[], asyncio.AbstractEventLoop],
    logged: Callable[[], list[logging.LogRecord]],
) -> None:
    ours, theirs, stranger = MemberKey.make(), MemberKey.make(), MemberKey.make()
    both = {"a": ours.public, "b": theirs.public}

    async def story() -> None:
        member = transport("b", HASTY, tls=Tls(theirs, both))
        listener = await member.listen(TcpAddress("127.0.0.1", 0), Script())
        assert isinstance(listener.address, TcpAddress)
        false = transport("a", tls=Tls(stranger, {"a": stranger.public, "b": theirs.public}))
        with pytest.raises(Unavailable, match="key"):
            await false.connect(listener.address, "b", Script())
        for _ in range(STRANGERS_MAX):  # as those do that only look whether a port is open
            _, writer = await asyncio.open_connection("127.0.0.1", listener.address.port)
            writer.close()
            await writer.wait_closed()
        async with asyncio.timeout(5):
            while True:
                try:
                    connection = await transport("a", tls=Tls(ours, both)).connect(
                        listener.address, "b", Script()
                    )
                except Unavailable:  # until their time is over
                    continue
                break
        assert await connection.call(ECHO, b"x") == b"x"
        await listener.close()

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(story())
    assert any("no greeting came" in vars(each)["fields"].get("why", "") for each in logged())


def test_a_key_that_is_registered_later_is_let_in_and_one_taken_out_is_not() -> None:
    async def story() -> None:
        ours, theirs = MemberKey.make(), MemberKey.make()
        both = {"a": ours.public, "b": theirs.public}
        registered = {"b": theirs.public}
        member = transport("b", tls=Tls(theirs, registered))
        listener = await member.listen(TcpAddress("127.0.0.1", 0), Script())
        with pytest.raises(Unavailable, match="key"):
            await transport("a", tls=Tls(ours, both)).connect(listener.address, "b", Script())
        registered["a"] = ours.public
        connection = await transport("a", tls=Tls(ours, both)).connect(
            listener.address, "b", Script()
        )
        assert await connection.call(ECHO, b"x") == b"x"
        del registered["a"]
        with pytest.raises(Exception, match="key"):
            await transport("a", tls=Tls(ours, both)).connect(listener.address, "b", Script())
        await listener.close()

    asyncio.run(story())


def test_a_key_is_made_once_kept_with_its_rights_and_found_again(tmp_path: Path) -> None:
    path = tmp_path / "member.pem"
    key = MemberKey.open(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert MemberKey.open(path).public == key.public
    path.write_text("nonsense")
    with pytest.raises(InvalidArgument, match="cannot be read"):
        MemberKey.open(path)


def test_a_connection_is_tls_1_3(tmp_path: Path) -> None:
    async def story() -> None:
        ours, theirs = MemberKey.make(), MemberKey.make()
        keys = {"a": ours.public, "b": theirs.public}
        listener = await transport("b", tls=Tls(theirs, keys)).listen(
            TcpAddress("127.0.0.1", 0), Script()
        )
        script = Script()
        connection = await transport("a", tls=Tls(ours, keys)).connect(
            listener.address, "b", script
        )
        await until(lambda: script.connection)
        wire = connection._wire._transport.get_extra_info("ssl_object")  # pyright: ignore
        assert wire.version() == "TLSv1.3"
        await listener.close()

    asyncio.run(story())
