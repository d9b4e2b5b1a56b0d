"""Type checkers report every wrong call of the public API, and no right one."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from checkers import Complaint, mypy, pyright

pytestmark = pytest.mark.xdist_group("typing")  # one cache

_CASES = sorted((Path(__file__).parent / "cases").glob("*.py"))


@pytest.mark.parametrize("check", [mypy, pyright])
def test_each_wrong_line_is_reported_and_each_right_one_is_not(
    check: Callable[[Iterable[Path]], list[Complaint]],
) -> None:
    expected = {
        (path.name, number)
        for path in _CASES
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if line.endswith("# error")
    }
    assert len(expected) > 50
    complaints = check(_CASES)
    reported = {(each.file, each.line) for each in complaints}
    assert expected - reported == set(), "wrong, and not reported"
    assert [each for each in complaints if (each.file, each.line) not in expected] == []
