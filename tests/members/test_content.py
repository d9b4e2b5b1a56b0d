"""Content at a node of two processes: whichever of them is asked."""

from pathlib import Path

from holdfast import Holdfast

from .node_process import started


def test_publishers_and_subscribers_at_two_processes(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "large.bin").write_bytes(bytes(300_000))
    with started(tmp_path / "data", "--processes", "2", "--partitions", "2") as node:
        node.until("UP")
        # Each client has connections of its own, which the system divides among the processes.
        for number in range(1, 4):
            with Holdfast.connect(node.url) as app:
                (site / "page.html").write_text(str(number))
                assert app.publisher("site", site).add().number == number
                store = tmp_path / f"{number}.sqlite"
                sub = app.subscriber(f"edge-{number}", of="site", into=store)
                sub.wait_until_idle(20)
                assert sub.imported == number
                data = sub.repository.get("/page.html").properties["data"]
                assert b"".join(sub.repository.read(data)) == str(number).encode()
        with Holdfast.connect(node.url) as app:
            views = app.publisher("site").subscribers()
            assert [each.lag for each in views] == [2, 1, 0]
        assert node.end() == (0, "")
