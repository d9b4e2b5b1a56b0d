"""Tasks that a worker's child processes import for themselves."""

import os

from holdfast import BusinessError, Holdfast, current_job

app = Holdfast.open(os.environ["PROCESS_TASKS_FOLDER"], workers=0)


@app.task(retries=0)
def process_of(number: int) -> list[int]:
    return [number, os.getpid()]


@app.task(retries=0)
def broken() -> None:
    raise LookupError("from the child")


@app.task(retries=1)
def dies_once(marker: str) -> str:
    if not os.path.exists(marker):  # noqa: PTH110
        with open(marker, "w"):  # noqa: PTH123
            os._exit(9)
    return "lived"


@app.task
def charge(amount: int, cover: int) -> dict[str, str]:
    origin = current_job().origin
    if amount > cover:
        raise BusinessError("DECLINED", "no cover", missing=amount - cover)
    return {"charged": f"{amount} {origin.headers['currency'] if origin else ''}"}
