"""The web shop: what `shop.py` does, from an event loop and with a node elsewhere.

`python docs/examples/web_shop.py ./web-data http://127.0.0.1:8080` runs it against a node.
"""

import asyncio
import sys
from collections.abc import Callable, Coroutine, Sized
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

from shop import INVOICE, ORDER, WAIT_S, Shop, ShopCodec, order, watch_feed

import holdfast as hf
from holdfast import Holdfast


async def serve(url: str, folder: Path) -> None:
    """What the handlers of a web application do."""
    async with Holdfast.connect_async(url, codec=ShopCodec()) as app:
        shop = Shop(app)
        worker = app.worker(concurrency=2)
        working = asyncio.create_task(worker.run_async())
        try:
            await sell_online(shop)
            await deliver_online(app)
        finally:
            await worker.stop_async()
            await working
    async with Holdfast.open_async(folder / "online", workers=0) as own:
        assert (await own.console_async()).endswith("/console")
        await own.close_console_async()
        await show_pages_online(own, folder)
        feeds = await own.group("feeds", run=watch_feed).start_async()
        await feeds.declare_async(["news"])
        await until(lambda: answer(feeds.owned == ["news"]))
        await feeds.stop_async()
    await own.close_async()  # it is closed already, which does no harm


async def sell_online(shop: Shop) -> None:
    app = shop.app
    handle = await shop.share.submit_async(Fraction(1, 2))
    assert await handle.result_async(WAIT_S) == Fraction(1, 4)
    later = await shop.share.bind(Fraction(1)).submit_async(key="later", delay=60)
    assert (await app.submit_async(shop.share.bind(Fraction(1)), key="later")).key == later.key
    assert (await later.view_async()).state == "SCHEDULED"
    await later.cancel_async()
    await app.schedule_async("hourly", shop.share.bind(Fraction(1)), every=3_600)
    await app.unschedule_async("hourly")
    await app.submit_many_async([shop.fragile.bind(1), shop.fragile.bind(1)])
    await until(lambda: has(app.incidents_async("fragile"), 2))
    found = await app.incidents_async("fragile")
    await app.retry_incident_async(found[0].incident_key)
    await app.discard_incident_async(found[1].incident_key)
    async with app.transaction() as t:
        part = t.submit(shop.share.bind(Fraction(8)), key="part")
    assert await part.result_async(WAIT_S) == Fraction(4)


async def deliver_online(app: Holdfast) -> None:
    deployed = await app.deploy_async(INVOICE, ORDER)
    assert len(await app.definitions_async("order")) == 1
    handle = await app.start_async("order", order("B-1", card=""))
    assert (await handle.result_async(WAIT_S))["total"] == 11.88
    moved, ended = await app.start_many_async("order", [order("B-2"), order("B-3")])
    assert len(await app.instances_async("order", limit=10)) == 2
    await moved.set_variables_async({"gift": False})
    await app.publish_async("picked-up", "B-2", ttl=60)
    await until(lambda: stands_at(moved, "paid"))
    await moved.migrate_async(deployed[1])
    await moved.modify_async(move={"paid": "done"})
    assert (await moved.result_async(WAIT_S))["gift"] is False
    await ended.cancel_async()


async def show_pages_online(app: Holdfast, folder: Path) -> None:
    async with await app.publisher_async("news", folder / "pages") as news:
        into = folder / "west"
        async with await app.subscriber_async("west", of="news", into=into, editable=True) as west:
            offset = (await news.add_async("/")).offset
            await news.test_async()
            await news.invalidate_async("/home.html")
            await west.wait_until_idle_async(WAIT_S)
            queue = news.queue("west")
            await until(lambda: has(news.subscribers_async(), 1))
            await until(lambda: is_empty(queue))
            assert await queue.head_async() is None and await news.errors_async("west") == []
            await news.clear_async("west", up_to=offset)
            for skip in (news.remove_async, news.retry_async):
                with suppress(hf.NotFound):
                    await skip("west", offset)
            await west.close_async()
        await news.delete_async("/home.html")
        assert (await news.farm_async()).publisher == (await app.publishers_async())[0].publisher
        assert [each.offset async for each in news.events_async()]
        await news.close_async()


async def until(is_so: Callable[[], Coroutine[Any, Any, bool]]) -> None:
    async with asyncio.timeout(WAIT_S):
        while True:
            if await is_so():
                return
            await asyncio.sleep(0.02)


async def answer(value: bool) -> bool:
    return value


async def has(found: Coroutine[Any, Any, Sized], count: int) -> bool:
    return len(await found) == count


async def is_empty(queue: hf.ContentQueue) -> bool:
    return await queue.length_async() == 0


async def stands_at(handle: hf.ProcessHandle, element: str) -> bool:
    return element in {each.element_id for each in (await handle.view_async()).elements}


def main(folder: Path, url: str) -> None:
    """Runs the web shop; its own pages and feeds are in a folder."""
    Holdfast.connect(url).close()  # raises at once where the address is wrong
    (folder / "pages").mkdir(parents=True)
    (folder / "pages" / "home.html").write_text("lamps")
    asyncio.run(serve(url, folder))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
