"""The pytest fixture: `pytest_plugins = ["holdfast.testing.plugin"]` in a `conftest.py`.

def test_invoices(holdfast_app):
    @holdfast_app.task
    def send_invoice(order: int) -> str: ...

    handle = send_invoice.submit(42)
    holdfast_app.run_all()
    assert handle.result() == ...
"""

from collections.abc import Iterator

import pytest

from holdfast.testing.kit import TestApp, app


@pytest.fixture
def holdfast_app() -> Iterator[TestApp]:
    """An app in memory whose clock stands still; see `holdfast.testing.app`."""
    with app() as opened:
        yield opened
