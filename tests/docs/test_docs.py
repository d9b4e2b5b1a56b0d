"""The documents say what is true: examples run, links lead somewhere, the reference is current."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from documents import DOCS, ROOT, Block, anchors_of, blocks_of, documents, links_of
from stage import Stage

# README and the tutorials are in test_first_hour.py.
_EXAMPLES = [
    *sorted((DOCS / "how-to").glob("*.md")),
    *sorted((DOCS / "explanation").glob("*.md")),
]


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_the_reference_is_what_the_code_says():
    done = subprocess.run(
        [sys.executable, str(DOCS / "generate.py"), "--check"],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", _EXAMPLES, ids=_name)
def test_the_examples_of_a_document_run(path: Path, tmp_path: Path):
    blocks = [
        block
        for block in blocks_of(path)
        if block.language in ("python", "sh") or block.file is not None
    ]
    needed = {tool for block in blocks for tool in ("curl", "jq") if tool in _commands(block)}
    if missing := [tool for tool in sorted(needed) if shutil.which(tool) is None]:
        pytest.skip(f"needs {', '.join(missing)}")
    with Stage(tmp_path) as stage:
        for block in blocks:
            if block.file is not None:
                stage.write(block.file, block.text)
        program = "\n\n".join(
            block.text for block in blocks if block.language == "python" and block.file is None
        )
        if program:
            stage.python(program)
        for block in blocks:
            if block.language == "sh" and block.file is None:
                stage.shell(block)


def _commands(block: Block) -> set[str]:
    return set(block.text.replace("$(", " ").split()) if block.language == "sh" else set()


@pytest.mark.parametrize("path", documents(), ids=_name)
def test_the_links_of_a_document_lead_somewhere(path: Path):
    dead = [
        f"{target}#{anchor}" if anchor else target
        for target, anchor in links_of(path)
        if not _exists((path.parent / target).resolve() if target else path, anchor)
    ]
    assert not dead


def _exists(target: Path, anchor: str) -> bool:
    return target.exists() and (not anchor or anchor in anchors_of(target))


def test_every_document_is_in_the_index():
    index = {(DOCS / target).resolve() for target, _ in links_of(DOCS / "README.md") if target}
    kinds = ("how-to", "explanation", "reference")
    listed = [*DOCS.glob("tutorial*.md")]
    listed += [path for kind in kinds for path in (DOCS / kind).glob("*.md")]
    assert {path.resolve() for path in listed} <= index


_RIDDLES = re.compile(
    r"\b(whoever|somebody|everybody|anybody|mended|manieth|says so|said so|is told|are told"
    r"|in the hands of|of its own accord|as it stands)\b",
    re.IGNORECASE,
)


@pytest.mark.parametrize("path", documents(), ids=_name)
def test_sentences_name_their_subject(path: Path):
    """Words that leave open who does what, or that no technical text has."""
    lines = enumerate(path.read_text().splitlines(), 1)
    assert not [f"{path.name}:{number}: {line}" for number, line in lines if _RIDDLES.search(line)]
