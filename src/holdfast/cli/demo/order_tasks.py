"""The demo's process: an order, written in Python, and the tasks that its steps ask for.

Run by `holdfast worker holdfast.cli.demo.order_tasks:app`.
"""

import os
import time
from functools import cache
from pathlib import Path

from holdfast import BusinessError, Holdfast, Process, error, otherwise, path, when
from holdfast.cli.demo.ledger import Ledger

LEDGER = "HOLDFAST_DEMO_ORDERS"  # the path of the ledger, given to the worker
EMPTY = "empty card"
DOWN = "Atlantis Bank"  # its card service is down until somebody repairs it
_WORK_SECONDS = 0.001  # what a call to the outside takes

ORDER = (
    Process("order", name="An order")
    .task(
        "charge",
        type="charge_card",
        retries=0,
        name="Charge the card",
        on=[error("DECLINED", path().end("declined", name="Declined"), name="Declined")],
    )
    .choose(
        when("total > 150", path().task("review", type="review_order", name="Review")),
        otherwise(name="small"),
        name="Large?",
    )
    .parallel(
        path().task("invoice", type="send_invoice", name="Send the invoice"),
        path().wait("paid", message="payment", key="string(order)", within="P3D", name="Payment"),
    )
    .end("done", name="Done")
)

app = Holdfast.connect()


@cache
def ledger() -> Ledger:
    """The ledger of this process."""
    return Ledger(Path(os.environ[LEDGER]))


@app.task
def charge_card(order: int, card: str) -> dict[str, str]:
    """Takes the money, where there is some and somebody answers."""
    time.sleep(_WORK_SECONDS)
    if card == DOWN and not ledger().is_repaired(DOWN):
        raise ConnectionError(f"the card service of {DOWN} is down")
    if card == EMPTY:
        raise BusinessError("DECLINED", "no cover", declined=True)
    ledger().apply(f"charge-{order}")
    return {"receipt": f"card-{order}"}


@app.task
def review_order(order: int, total: float) -> dict[str, bool]:
    """Looks at a large order."""
    time.sleep(_WORK_SECONDS)
    return {"reviewed": True}


@app.task
def send_invoice(order: int, total: float) -> dict[str, str]:
    """Writes the invoice."""
    time.sleep(_WORK_SECONDS)
    ledger().apply(f"invoice-{order}")
    return {"invoice": f"invoice {order} over {total:.2f} EUR"}
