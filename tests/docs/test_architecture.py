"""ARCHITECTURE.md names what is there: rooms, modules, tests, and decisions by number."""

import re
from pathlib import Path

import pytest
from documents import ROOT

TEXT = (ROOT / "ARCHITECTURE.md").read_text()
SOURCE = ROOT / "src" / "holdfast"
_SHOWN = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def section(title: str) -> str:
    """A section from its heading to the next one."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## )", TEXT, re.DOTALL | re.MULTILINE)
    assert found is not None, f"there is no section {title!r}"
    return found[1]


GUARANTEES = section("Guarantees, and the tests that show them")


def test_every_guarantee_has_a_test() -> None:
    rows = [line for line in GUARANTEES.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 20
    assert [row for row in rows if not _SHOWN.search(row)] == []


@pytest.mark.parametrize(("path", "name"), _SHOWN.findall(GUARANTEES))
def test_the_test_that_shows_a_guarantee_exists(path: str, name: str) -> None:
    assert re.search(rf"^(async )?def {name}\(", (ROOT / path).read_text(), re.MULTILINE)


def test_every_module_on_the_walk_of_a_record_exists() -> None:
    modules = re.findall(r"`([\w/]+\.py)`", section("The walk of one record"))
    assert len(modules) > 30
    assert [each for each in modules if not (SOURCE / each).is_file()] == []


def test_every_package_is_in_the_table_of_rooms() -> None:
    rooms = section("The rooms")
    packages = [path.name for path in SOURCE.iterdir() if (path / "__init__.py").is_file()]
    assert [name for name in packages if f"`{name}/" not in rooms] == []


def test_decisions_are_numbered_in_their_order() -> None:
    numbers = [int(each) for each in re.findall(r"^#### (\d+)\. ", TEXT, re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1))


def test_a_decision_is_referred_to_by_a_link_with_its_number_and_title() -> None:
    """A new decision moves the numbers; a link with the title then leads nowhere, and is found."""
    assert re.findall(r"\(\d{1,3}(?:, \d{1,3})*\)", TEXT) == []
    referred = re.findall(r"\[(\d+)\]\(#(\d+)-[\w-]+\)", TEXT)
    assert len(referred) > 15
    assert [each for each in referred if each[0] != each[1]] == []


def test_rooms_of_decisions_exist() -> None:
    for rooms in re.findall(r"^### (.*)$", section("Decisions by room"), re.MULTILINE):
        for room in re.findall(r"`([\w/]+)/`", rooms):
            assert Path(SOURCE / room).is_dir(), room
