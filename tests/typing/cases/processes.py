"""Calls about processes, right and wrong: `# error` marks each line that must be reported."""

from typing import Any, assert_type

from holdfast import Holdfast, Process, ProcessHandle

app = Holdfast.open("work")
app.deploy(Process("order").task("charge"))
app.deploy(5)  # error

order = app.start("order", {"total": 5})
assert_type(order, ProcessHandle)
assert_type(order.result(), dict[str, Any])
assert_type(order.view().variables, dict[str, Any])
assert_type(order.view().process_id, str)
app.start(5)  # error
app.start("order", ["total", 5])  # error
app.start("order", key=5)  # error
order.result("5")  # error
order.set_variables([5])  # error
order.set_variables({"total": 6}, local="yes")  # error
order.modify(terminate=5)  # error
order.migrate(5)  # error
order.stop()  # error
app.publish("paid", "A-1", {"total": 5}, ttl=60)
app.publish("paid", ["A-1"])  # error
app.publish("paid", ttl="60")  # error


async def from_a_loop() -> None:
    started = await app.start_async("order")
    assert_type(started, ProcessHandle)
    assert_type(await started.result_async(timeout=5), dict[str, Any])
    assert_type((await started.view_async()).variables, dict[str, Any])
    await started.set_variables_async({"total": 6})
    await started.modify_async(activate=["charge"])
    await started.migrate_async("2251799813685249")
    await started.cancel_async()
    await started.set_variables_async(5)  # error
    await app.start_async(5)  # error
