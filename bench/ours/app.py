"""The no-op task."""

from holdfast import Holdfast

app = Holdfast.connect()


@app.task(keep_result=0)
def nothing(number: int) -> int:
    """Does nothing, durably. No result is kept, as the peers keep none."""
    return number
