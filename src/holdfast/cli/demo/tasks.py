"""The demo's app: a shop. Run by `holdfast worker holdfast.cli.demo.tasks:app`."""

import os
import time
from functools import cache
from pathlib import Path

from holdfast import Holdfast, RetryBackoff
from holdfast.cli.demo.ledger import Ledger
from holdfast.engine.jobs.values import BackoffKind

LEDGER = "HOLDFAST_DEMO_LEDGER"  # the path of the ledger, given to the workers
CARRIER = "carrier"  # what does not know some addresses until somebody repairs it
TIMEOUT_EVERY = 40  # orders whose card is only charged at the second attempt
_WORK_SECONDS = 0.001  # what a call to the outside takes

_SOON = RetryBackoff(BackoffKind.FIXED, base_ms=300)

app = Holdfast.connect()


@cache
def ledger() -> Ledger:
    """The ledger of this process."""
    return Ledger(Path(os.environ[LEDGER]))


class CardTimeoutError(Exception):
    """The card's bank did not answer in time."""


class UnknownAddressError(Exception):
    """The carrier cannot deliver there."""


@app.task(retries=5, backoff=_SOON)
def charge(order: int, cents: int) -> str:
    """Takes the money; every fortieth bank times out at first."""
    reference = f"charge-{order}"
    attempt = ledger().attempt(reference)
    time.sleep(_WORK_SECONDS)
    if attempt == 1 and order % TIMEOUT_EVERY == 0:
        raise CardTimeoutError(f"the bank of order {order} did not answer")
    ledger().apply(reference)
    return f"{cents / 100:.2f} EUR"


@app.task(retries=3, backoff=_SOON)
def invoice(order: int, cents: int) -> str:
    """Writes the invoice."""
    ledger().attempt(f"invoice-{order}")
    time.sleep(_WORK_SECONDS)
    ledger().apply(f"invoice-{order}")
    return f"invoice {order} over {cents / 100:.2f} EUR"


@app.task(retries=1, backoff=_SOON)
def ship(order: int, city: str) -> str:
    """Hands the parcel over; the carrier does not know Atlantis until it is repaired."""
    ledger().attempt(f"ship-{order}")
    time.sleep(_WORK_SECONDS)
    if city == "Atlantis" and not ledger().is_repaired(CARRIER):
        raise UnknownAddressError(f"the carrier does not know {city}")
    ledger().apply(f"ship-{order}")
    return f"parcel {order} to {city}"
