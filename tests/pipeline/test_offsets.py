"""What a micro-batch covers, as the checkpoint tells it."""

from pathlib import Path

import pytest

from holdfast.pipeline.offsets import Span, spans_of


def write(folder: Path, number: int, text: str) -> None:
    (folder / "offsets").mkdir(exist_ok=True)
    (folder / "offsets" / str(number)).write_text(text)


def test_the_positions_between_one_micro_batch_and_the_next(tmp_path: Path) -> None:
    write(tmp_path, 4, 'v1\n{"conf":{}}\n{"1": 10, "2": 7}')
    write(tmp_path, 5, 'v1\n{"conf":{}}\n{"1": 12, "2": 7, "3": 2}')
    assert spans_of(tmp_path, 5) == [Span(1, 10, 12), Span(3, 0, 2)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        'v2\n{}\n{"1": 12}',
        "v1\n{}\n{",
        "v1\n{}\n-",
        'v1\n{}\n{"1": 12}\n{"1": 12}',
        'v1\n{}\n["1"]',
        'v1\n{}\n{"1": "x"}',
    ],
)
def test_what_is_not_understood_is_not_guessed(tmp_path: Path, text: str) -> None:
    assert spans_of(tmp_path, 1) is None
    write(tmp_path, 0, 'v1\n{}\n{"1": 10}')
    assert spans_of(tmp_path, 1) is None
    write(tmp_path, 1, text)
    assert spans_of(tmp_path, 1) is None
