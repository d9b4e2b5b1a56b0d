"""Opens a store that was put in the place of another one."""

import asyncio
import gc
from pathlib import Path

from holdfast.errors import Unavailable
from holdfast.logs import log
from holdfast.state.rocks import RocksStore

_ATTEMPTS = 50
_PAUSE_SECONDS = 0.1


async def open_live(path: Path) -> RocksStore:
    """The store in a folder, once nobody reads the one that was there before."""
    for _ in range(_ATTEMPTS):
        try:
            return RocksStore(path)
        except Unavailable as error:  # a scan that was interrupted keeps RocksDB open
            log.info("state does not open yet", error=error.message)
            gc.collect()
            await asyncio.sleep(_PAUSE_SECONDS)
    return RocksStore(path)
