"""Every Python example of the documents is clean to the type checkers that users have."""

import functools
from pathlib import Path

import pytest
from checkers import EXAMPLES, ROOT, Complaint, mypy, pyright
from examples import documents, write_examples

pytestmark = pytest.mark.xdist_group("typing")  # one cache, and one folder of examples


@functools.cache
def written() -> dict[Path, Path]:
    found = write_examples(documents(), EXAMPLES)
    assert len(found) > 80, "the documents have more examples than that"
    return found


def told(complaints: list[Complaint]) -> str:
    """The complaints, with the places in the documents."""
    homes = {path.name: document.relative_to(ROOT) for path, document in written().items()}
    return "\n".join(f"{homes[each.file]}:{each.line}: {each.text}" for each in complaints)


def test_mypy_finds_nothing_in_the_examples() -> None:
    assert told(mypy(written())) == ""


def test_pyright_finds_nothing_in_the_examples() -> None:
    assert told(pyright(written(), "standard")) == ""


_WRONG = """# Greet

```python
from holdfast import Holdfast

app = Holdfast.open("./data")


@app.task
def greet(name: str) -> None: ...


greet.submit("a")
```

Names may be defined anew, and come from earlier examples.

```python
@app.task
def greet(number: int) -> None: ...


greet.submit(5)
greet.submit("a")
```
"""


def test_a_wrong_example_is_reported_with_its_line_in_the_document(tmp_path: Path) -> None:
    document = tmp_path / "greet.md"
    document.write_text(_WRONG)
    examples = write_examples([document], tmp_path / "examples")
    wrong = _WRONG.splitlines().index('greet.submit("a")', 15) + 1
    for check in (mypy, pyright):
        complaints = check(examples, path=tmp_path / "examples")
        assert [each.line for each in complaints] == [wrong], complaints
