"""The console: its first page over very many instances, its bytes, and what open tabs cost."""

import re
import selectors
import socket
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

import httpx

from bench.harness import Figure, Run, benchmark, fixed, remove
from bench.ours.node import OurNode

INSTANCES = 10_000_000
PAGE_MS_MAX = 150.0
FIRST_PAGE_BYTES_MAX = 100_000.0
TABS = 50
SUBMISSIONS = 20_000  # enough for the clock of processor time, which ticks every 10 ms
_FILES = re.compile(r'(?:src|href)="(/console/static/[^"]*)"')


@benchmark("console")
def console(run: Run) -> Iterator[Figure]:
    from bench.ours.instances import write_instances

    folder = run.folder("console")
    with ExitStack() as stack:
        stack.callback(remove, folder)
        instances = run.scaled(INSTANCES)
        write_instances(folder / "data" / "tables", instances)
        node = stack.enter_context(OurNode(folder / "data"))
        browser = stack.enter_context(httpx.Client(base_url=node.url, timeout=60))
        for title, path in (("overview", "/console"), ("instances", "/console/instances")):
            yield Figure(
                name=f"the page {title} with {instances:,} instances in the tables, p50",
                against="150 ms",
                goal="<= 1",
                unit="ms",
                ours=lambda path=path: _median_ms(browser, path),
                peer=fixed(PAGE_MS_MAX),
            )
        yield Figure(
            name="bytes of the first page and all that it loads",
            against="100 KB",
            goal="<= 1",
            unit="bytes",
            ours=lambda: _first_page_bytes(browser),
            peer=fixed(FIRST_PAGE_BYTES_MAX),
        )
        count = run.scaled(SUBMISSIONS)
        for name, tabs, goal in ((f"{TABS} tabs", TABS, "<= 1.05"), ("none, too", 0, "<= 1.05")):
            yield Figure(
                name=f"processor time of a busy node for a submission, {name}",
                against="without a tab",
                goal=goal,
                unit="ms",
                ours=lambda tabs=tabs: _cost_ms(node, browser, count, tabs),
                peer=lambda: _cost_ms(node, browser, count, 0),
            )


def _median_ms(browser: httpx.Client, path: str, times: int = 9) -> float:
    spans: list[float] = []
    for _ in range(times):
        begun = time.perf_counter()
        browser.get(path).raise_for_status()
        spans.append((time.perf_counter() - begun) * 1_000)
    return statistics.median(spans)


def _first_page_bytes(browser: httpx.Client) -> float:
    page = browser.get("/console").text
    total = 0
    for path in {"/console", *_FILES.findall(page)}:
        with browser.stream("GET", path, headers={"accept-encoding": "gzip"}) as sent:
            total += sum(len(each) for each in sent.iter_raw())
    return float(total)


def _cost_ms(node: OurNode, browser: httpx.Client, count: int, tabs: int) -> float:
    """Processor time of the node for one submission, while tabs are open."""
    with _open_tabs(node.url, tabs):
        before = node.cpu_seconds()
        for number in range(count):
            task = {"type": "nothing", "payload": number}
            browser.post("/v2/tasks/batch", json={"tasks": [task]}).raise_for_status()
        return (node.cpu_seconds() - before) / count * 1_000


@contextmanager
def _open_tabs(url: str, tabs: int) -> Iterator[None]:
    """Streams of live numbers, which are read as they come."""
    with ExitStack() as stack:
        where, waiting = urlsplit(url), stack.enter_context(selectors.DefaultSelector())
        for _ in range(tabs):
            tab = stack.enter_context(socket.create_connection((where.hostname, where.port)))
            tab.sendall(f"GET /console/live HTTP/1.1\r\nHost: {where.netloc}\r\n\r\n".encode())
            assert tab.recv(12) == b"HTTP/1.1 200", "the stream is open"
            waiting.register(tab, selectors.EVENT_READ)
        is_over = threading.Event()
        reader = threading.Thread(target=_read, args=(waiting, is_over), daemon=True)
        reader.start()
        try:
            yield
        finally:
            is_over.set()
            reader.join()


def _read(waiting: selectors.BaseSelector, is_over: threading.Event) -> None:
    while not is_over.wait(0.1):
        for key, _ in waiting.select(0):
            assert isinstance(key.fileobj, socket.socket)
            key.fileobj.recv(1 << 20)
