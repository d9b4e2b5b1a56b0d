"""A new user's first hour: README and the tutorials step by step in one empty folder."""

from pathlib import Path

import pytest
from documents import DOCS, ROOT, Block, blocks_of
from printed import matches, surprises
from stage import Stage

_PAGES = [
    ROOT / "README.md",
    DOCS / "tutorial.md",
    DOCS / "tutorial-processes.md",
    DOCS / "tutorial-content.md",
]
_PAGE_WITH_SPARK = DOCS / "tutorial-ask-your-work-log.md"
_NOT_STRAY = {"__pycache__", "home"}


def test_every_tutorial_is_replayed():
    assert {*DOCS.glob("tutorial*.md")} < {*_PAGES, _PAGE_WITH_SPARK}


def test_a_new_user_meets_no_surprise_in_the_first_hour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = _empty_folder(tmp_path, monkeypatch)
    for page in _PAGES:
        _replay(page, folder)
    _replay(_PAGES[0], folder, again=True)  # the others again: in the soak
    assert not [*(tmp_path / "home").iterdir()]


@pytest.mark.soak
@pytest.mark.xdist_group("spark-processes")
def test_all_tutorials_can_be_followed_twice_in_one_folder(tmp_path: Path):
    folder = _empty_folder(tmp_path)
    for again in (False, True):
        for page in (*_PAGES, _PAGE_WITH_SPARK):
            _replay(page, folder, again=again)


def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch | None = None) -> Path:
    if monkeypatch is not None:
        (tmp_path / "home").mkdir()
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def _replay(page: Path, folder: Path, *, again: bool = False) -> None:
    """Follows the page step by step and compares what is printed with what it shows."""
    before = {entry.name for entry in folder.iterdir()}
    steps = [block for block in blocks_of(page) if block.language]
    with Stage(folder) as stage:
        for step, following in zip(steps, [*steps[1:], None], strict=True):
            if step.file is not None:
                stage.write(step.file, step.text)
            elif step.language == "sh":
                printed = stage.shell(step)
                if not step.background:
                    _check(page, step, following, printed, again)
        printed = stage.interrupt()
        expected = any(step.marker == "background: logs failures" for step in steps)
        assert expected or not surprises(printed), f"{page.name}, in the background:\n{printed}"
    text = page.read_text()
    added = {entry.name for entry in folder.iterdir()} - before - _NOT_STRAY
    assert not [name for name in sorted(added) if name not in text], f"files that {page.name} hides"


def _check(page: Path, step: Block, following: Block | None, printed: str, again: bool) -> None:
    shown = following.text if following is not None and following.language == "text" else ""
    marker = following.marker if following is not None else ""
    assert surprises(shown) or not surprises(printed), f"{page.name}: {step.text}{printed}"
    if again and marker == "first time":
        return
    # A second run counts on where the first one ended.
    assert matches(shown, printed, any_number=again or marker == "numbers differ"), (
        f"{page.name}, {'second' if again else 'first'} run:\n{step.text}\n"
        f"the page shows\n{shown}\nbut it prints\n{printed}"
    )
