"""Programs with a client that end in other ways than they should."""

import subprocess
import sys

import pytest

from .shell import Shell

CONNECTED = """
from holdfast import Holdfast
app = Holdfast.connect({url!r})

@app.task
def double(x: int) -> int:
    return 2 * x

handle = double.submit(21)
print(handle.key)
"""
ENDS = {
    "with an exception": "raise ValueError('a mistake of the program')",
    "without close": "",
    "with sys.exit": "import sys; sys.exit(3)",
    "with the app collected": "import gc; del app, double, handle; gc.collect()",
}


@pytest.mark.parametrize("end", ENDS)
def test_a_program_that_does_not_close_its_client_ends_quietly(shell: Shell, end: str) -> None:
    shell.serve_node()
    program = CONNECTED.format(url=shell.url) + ENDS[end]
    command = [sys.executable, "-X", "dev", "-W", "default::ResourceWarning", "-c", program]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert ran.stdout.strip().isdigit(), ran.stderr
    assert "Unclosed" not in ran.stderr
    mistake = "a mistake of the program" in ran.stderr
    assert mistake == (end == "with an exception"), ran.stderr
