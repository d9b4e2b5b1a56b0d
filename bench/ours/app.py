"""The no-op task."""

from holdfast import Holdfast

app = Holdfast.connect()


@app.task(keep_result=60)
def nothing(number: int) -> int:
    """Does nothing, durably."""
    return number
