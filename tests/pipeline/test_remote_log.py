"""The log over the network is the log in the files."""

import socket
import threading
from pathlib import Path

import pytest
from served_node import PARTITIONS, ServedNode

from holdfast.engine.kernel.runner import TOPIC
from holdfast.errors import Internal, InvalidArgument, NotFound, Unavailable
from holdfast.pipeline.log import FileLog, entries_between, open_log
from holdfast.pipeline.remote_log import RemoteLog


def test_far_and_near_read_the_same(node: ServedNode) -> None:
    node.live_a_little()
    far, near = open_log(node.url), open_log(str(node.folder))
    assert isinstance(far, RemoteLog) and isinstance(near, FileLog)
    assert far.bounds() == near.bounds()
    assert list(far.bounds()) == list(range(1, PARTITIONS + 1))
    for partition, bounds in far.bounds().items():
        found = list(entries_between(far, partition, bounds.earliest, bounds.next))
        assert found == list(entries_between(near, partition, bounds.earliest, bounds.next))
        assert sum(map(len, found)) == bounds.next - bounds.earliest > 0
        assert far.read(partition, bounds.next) == []
    far.close()
    near.close()


def test_a_large_log_comes_in_pieces(node: ServedNode) -> None:
    for n in range(4):
        node.submit(5_000, f"type{n}")
    log = open_log(node.url)
    bounds = log.bounds()[1]
    pieces = list(entries_between(log, 1, 10, bounds.next - 10))
    log.close()
    assert len(pieces) > 1
    offsets = [entry.offset for piece in pieces for entry in piece]
    assert offsets == list(range(10, bounds.next - 10))


def test_what_was_cut_off_is_not_found_and_what_is_not_there_yet_too(node: ServedNode) -> None:
    node.submit(100)
    node.portal.loop.call_soon_threadsafe(node.node.journal.discard, TOPIC, 1, 5)
    log = open_log(node.url)
    with pytest.raises(NotFound, match="expected an offset from 5 to"):
        log.read(1, 4)
    end = log.bounds()[1].next
    with pytest.raises(NotFound, match=f"reach to {end + 1}, but it ends at {end}"):
        list(entries_between(log, 1, 5, end + 1))
    with pytest.raises(InvalidArgument, match=f"Expected partition from 1 to {PARTITIONS}"):
        log.read(PARTITIONS + 1, 0)
    log.close()


def test_a_node_that_goes_away_is_unavailable_and_read_again_when_it_is_back(
    tmp_path: Path,
) -> None:
    node = ServedNode(tmp_path / "node")
    node.submit(100)
    log = open_log(node.url)
    before = log.bounds()
    port = int(node.url.rpartition(":")[2])
    node.close()
    with pytest.raises(Unavailable, match=node.url):
        log.bounds()
    again = ServedNode(tmp_path / "node", port=port)
    assert log.bounds() == before
    assert log.read(1, 0)
    log.close()
    again.close()


def test_where_no_node_is_the_error_names_the_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    log = open_log(url)
    with pytest.raises(Unavailable, match=f"Cannot reach the node at {url}"):
        log.bounds()
    log.close()


def test_what_is_no_log_is_told_as_such() -> None:
    page = b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n<html/>"

    def answer(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(65_536)
            connection.sendall(page)

    with socket.create_server(("127.0.0.1", 0)) as server:
        answering = threading.Thread(target=answer, args=(server,))
        answering.start()
        log = open_log(f"http://127.0.0.1:{server.getsockname()[1]}")
        with pytest.raises(Internal, match=r"Expected entries of the log from .*<html/>"):
            log.read(1, 0)
        log.close()
        answering.join()


def test_an_address_is_a_folder_of_a_node_or_a_url(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="Expected the folder of a node"):
        open_log(str(tmp_path / "nothing"))
    with pytest.raises(InvalidArgument, match="Expected the folder of a node or a URL"):
        open_log("ftp://example.org")
    with pytest.raises(InvalidArgument, match="Expected a URL"):
        open_log("http://")
