"""A node without uvloop runs in asyncio's own loop."""

import subprocess
import sys
from pathlib import Path

_PROGRAM = """
import sys
sys.modules["uvloop"] = None  # as if it were not installed
from holdfast import Holdfast
from holdfast.event_loop import NAME, run
assert NAME == "asyncio"

async def answer(): return 42
assert run(answer()) == 42

with Holdfast.open(sys.argv[1]) as app:
    @app.task
    def add(a: int, b: int) -> int:
        return a + b
    handle = add.submit(1, 2)
    worker = app.worker()
    import threading
    thread = threading.Thread(target=worker.run)
    thread.start()
    assert handle.result(timeout=20) == 3
    import asyncio
    assert isinstance(app.portal.loop, asyncio.SelectorEventLoop)
    worker.stop()
    thread.join()
print("done")
"""


def test_a_node_runs_without_uvloop(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(tmp_path / "data")],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stdout == "done\n", done.stderr
