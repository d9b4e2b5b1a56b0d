"""An S3 server for tests: moto, in a process and an environment of its own."""

import contextlib
import re
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

BUCKET = "holdfast"
KEY, SECRET = "test-key", "test/secret+1"  # what a URL has to escape
_PYTHON = Path(sys.prefix) / "moto" / "bin" / "python"


@contextlib.contextmanager
def s3_server() -> Iterator[str]:
    """The address of a server with an empty bucket."""
    if not _PYTHON.exists():
        pytest.fail(f"needs moto in {_PYTHON}: `make test` installs it (tests/contract/moto.txt)")
    server = subprocess.Popen(
        [str(_PYTHON), "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert server.stdout is not None
    try:
        ports = (re.search(r"http://127\.0\.0\.1:(\d+)", line) for line in server.stdout)
        port = next(found[1] for found in ports if found)
        threading.Thread(target=server.stdout.read, daemon=True).start()  # or it would block
        address = f"http://127.0.0.1:{port}"
        call(address, "PUT", f"/{BUCKET}")
        yield address
    finally:
        server.kill()
        server.wait()


def call(address: str, method: str, path: str) -> bytes:
    with urllib.request.urlopen(
        urllib.request.Request(address + path, method=method), timeout=10
    ) as answer:
        return answer.read()


def uploads_under_way(address: str) -> int:
    """Multipart uploads that S3 keeps, at somebody's cost."""
    return call(address, "GET", f"/{BUCKET}?uploads").count(b"<UploadId>")


@contextlib.contextmanager
def unsteady(address: str, failures: int) -> Iterator[tuple[str, list[str]]]:
    """A way to the server that answers 503 to the first requests; and what was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_any(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            body = self.rfile.read(length)
            asked.append(self.command)
            if len(asked) <= failures:
                self.send_response(503)
                self.send_header("content-length", "0")
                self.end_headers()
                return
            headers = {
                name: value
                for name, value in self.headers.items()
                if name.lower() not in ("host", "content-length")
            }
            headers.setdefault("content-type", "application/octet-stream")  # and no form
            request = urllib.request.Request(
                address + self.path, data=body or None, method=self.command, headers=headers
            )
            with urllib.request.urlopen(request, timeout=10) as answer:
                content = answer.read()
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                        self.send_header(name, value)
                known = answer.headers.get("content-length") if self.command == "HEAD" else None
                self.send_header("content-length", known or str(len(content)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = do_any  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
