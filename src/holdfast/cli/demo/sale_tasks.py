"""The third act of the demo: an order of the sale, in Python, and the task that its step asks for.

Run by `holdfast worker holdfast.cli.demo.sale_tasks:app`, in a release that has a bug or not.
"""

import os
import time
from functools import cache
from pathlib import Path

from holdfast import Holdfast, Process
from holdfast.cli.demo.ledger import Ledger

LEDGER = "HOLDFAST_DEMO_SALE"  # the path of the ledger, given to the worker
RELEASE = "HOLDFAST_DEMO_RELEASE"  # of this code, given to the worker
BROKEN, FIXED = "1", "2"
_WORK_SECONDS = 0.001  # what a call to the outside takes

SALE = (
    Process("sale", name="An order of the sale")
    .task("charge", type="charge_sale", retries=0, name="Charge the card")
    .end("done", name="Done")
)

app = Holdfast.connect()


@cache
def ledger() -> Ledger:
    """The ledger of this process."""
    return Ledger(Path(os.environ[LEDGER]))


@app.task
def charge_sale(sale: int, price: str) -> dict[str, str]:
    """Takes the money. The first release does not know that prices may come with a comma."""
    time.sleep(_WORK_SECONDS)
    total = float(price if os.environ[RELEASE] == BROKEN else price.replace(",", "."))
    ledger().apply(f"sale-{sale}")
    return {"receipt": f"sale-{sale} over {total:.2f} EUR"}
