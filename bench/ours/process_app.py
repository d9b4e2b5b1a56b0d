"""The processes that are measured, and the tasks that do their steps."""

from holdfast import Holdfast, Process, over

app = Holdfast.connect()

TWO_STEP = Process("two-step").task("first").task("second").end()
EACH = (
    Process("each")
    .task("item", each=over("items", item="number", collect="done", result="n"))
    .end()
)


@app.task
def first(number: int) -> dict[str, int]:
    """Does nothing, and says so."""
    return {"one": number}


@app.task
def second(one: int) -> dict[str, int]:
    """Does nothing with what the first step said."""
    return {"two": one}


@app.task
def item(number: int) -> dict[str, int]:
    """Does nothing for one of many items."""
    return {"n": number}
