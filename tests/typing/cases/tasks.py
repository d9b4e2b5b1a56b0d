"""Calls of tasks, right and wrong: `# error` marks each line that a type checker must report."""

from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, assert_type

from holdfast import BoundTask, CoroutineTask, FunctionTask, Handle, Holdfast, Task

app = Holdfast.open("work")


@dataclass
class Order:
    number: int


@app.task
def greet(name: str, times: int = 1) -> str:
    return name * times


@app.task(retries=5)
def bill(order: Order, *, gross: bool = False) -> float:
    return 1.5


@app.task
async def fetch(url: str) -> bytes:
    return url.encode()


@app.task(timeout=5)
async def count(words: list[str]) -> dict[str, int]:
    return dict.fromkeys(words, 1)


@app.task(name="nothing")
def nothing() -> None: ...


# --- what a task is ---------------------------------------------------------------------------

assert_type(greet("a"), str)
later: Coroutine[Any, Any, bytes] = fetch("a")
sooner: Coroutine[Any, Any, str] = fetch("a")  # error
plain: Task[[], None] = nothing
either: FunctionTask[[], None] | CoroutineTask[[], None] = nothing
wrong_result: Task[[], int] = nothing  # error
wrong_kind: CoroutineTask[[], None] = nothing  # error
greet(5)  # error
never = fetch(5)  # error

# --- submit -----------------------------------------------------------------------------------

assert_type(greet.submit("a"), Handle[str])
assert_type(greet.submit("a", 2).result(), str)
assert_type(greet.submit(name="a", times=2).result(timeout=5), str)
assert_type(bill.submit(Order(1)).result(), float)
assert_type(bill.submit(Order(1), gross=True).created, bool)
assert_type(fetch.submit("a").result(), bytes)
assert_type(count.submit(["a"]).result(), dict[str, int])
nothing.submit()
greet.submit()  # error
greet.submit(5)  # error
greet.submit("a", "b")  # error
greet.submit("a", 2, 3)  # error
greet.submit("a", time=2)  # error
greet.submit("a", key="k")  # error
bill.submit({"number": 1})  # error
bill.submit(Order(1), True)  # error
fetch.submit(b"a")  # error
count.submit("a")  # error
count.submit([1])  # error
nothing.submit(1)  # error

# --- bind -------------------------------------------------------------------------------------

assert_type(greet.bind("a"), BoundTask[str])
assert_type(greet.bind("a").submit(key="k", delay=5), Handle[str])
assert_type(fetch.bind("a").submit(delay=timedelta(hours=1)).result(), bytes)
greet.bind("a").submit(priority=1)
greet.bind(5)  # error
fetch.bind()  # error
greet.bind("a").submit(key=5)  # error
greet.bind("a").submit(delay="1 h")  # error
greet.bind("a").submit(due="tomorrow")  # error
greet.bind("a").submit(kee="k")  # error

# --- handles ----------------------------------------------------------------------------------

assert_type(greet.handle("1").result(), str)
wider: Handle[object] = greet.submit("a")
narrower: Handle[int] = greet.submit("a")  # error
number: int = greet.submit("a").result()  # error
awaited: int = fetch.submit("a").result()  # error
greet.submit("a").result("5")  # error
greet.submit("a").result(wait=5)  # error
greet.submit("a").outcome()  # error

# --- together ---------------------------------------------------------------------------------

assert_type(app.submit_many([greet.bind("a"), greet.bind("b")]), list[Handle[str]])
different: list[Handle[object]] = app.submit_many([greet.bind("a"), fetch.bind("b")])
app.submit_many([greet.submit("a")])  # error
app.submit_many([greet])  # error
app.schedule("nightly", greet.bind("a"), every=60)
app.schedule("nightly", greet, every=60)  # error
with app.transaction() as t:
    assert_type(t.submit(greet, "a"), Handle[str])
    assert_type(t.submit(fetch, "a"), Handle[bytes])
    assert_type(t.submit(bill.bind(Order(1)), key="k"), Handle[float])
    t.submit(greet, 5)  # error
    t.submit(greet, "a", key="k")  # error
    t.submit(bill.bind(Order(1)), key=5)  # error


async def from_a_loop() -> None:
    assert_type(await greet.submit_async("a"), Handle[str])
    assert_type(await (await fetch.submit_async("a")).result_async(), bytes)
    assert_type(await fetch.bind("a").submit_async(key="k"), Handle[bytes])
    assert_type(await fetch("a"), bytes)
    await greet.submit_async(5)  # error
    await fetch.submit_async(5)  # error
    await greet("a")  # error
    await fetch.bind("a").submit_async(key=5)  # error
    print(len(await fetch("a")))
    print(1 + await fetch("a"))  # error
