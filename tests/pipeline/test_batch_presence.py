"""Waiting for the pipeline: as long as it is on its way, and not at all where there is none."""

import asyncio
import os
import threading
import time
from pathlib import Path

import pytest
from tests.pipeline.select_tables import PROCESS_INSTANCES, Tables

from holdfast.clock import SystemClock
from holdfast.engine.batch.values import BatchOperation, BatchOperationType, Selection
from holdfast.errors import Unavailable
from holdfast.pipeline.batch import selector as selector_module
from holdfast.pipeline.batch.selector import PipelineSelector
from holdfast.pipeline.select.presence import Presence, Present, present
from holdfast.pipeline.select.requests import open_requests
from holdfast.pipeline.select.snapshot import SelectionManifest, folder_of, store_manifest
from holdfast.pipeline.select.tree import EVERYTHING
from holdfast.pipeline.tables.versions import Versions

WANTED = BatchOperation(
    BatchOperationType.CANCEL_PROCESS_INSTANCE,
    b'{"processId":"order"}',
    selection=Selection("batch-5", {1: 7}),
)


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    tables = Tables(tmp_path)
    tables.publish()
    return tables


@pytest.fixture
def selector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tables: Tables) -> PipelineSelector:
    """One whose patience is a few tenths of a second."""
    monkeypatch.setattr(selector_module, "BATCH_SELECTION_WAIT_MS", 300)
    monkeypatch.setattr(selector_module, "_NOBODY_SECONDS", 0.2)
    monkeypatch.setattr(selector_module, "_PREVIEW_SECONDS", 0.3)
    monkeypatch.setattr(selector_module, "_PREVIEW_SECONDS_MAX", 0.5)
    return PipelineSelector(Versions(tmp_path), SystemClock())


def test_it_is_there_until_it_ends_or_is_lost(tmp_path: Path) -> None:
    assert present(tmp_path) is None
    with Presence(tmp_path / "new") as presence:
        assert present(tmp_path / "new") is Present.STARTING
        presence.tell(Present.SERVING)
        assert present(tmp_path / "new") is Present.SERVING
        path = tmp_path / "new" / "_pipeline"
        lost = time.time() - 11
        os.utime(path, (lost, lost))  # as if its process had been killed
        deadline = time.monotonic() + 10
        while present(tmp_path / "new") is None:
            assert time.monotonic() < deadline, "it is renewed as long as it lives"
    assert present(tmp_path / "new") is None
    path.write_bytes(b"half a fi")
    assert present(tmp_path / "new") is None


def test_a_dry_run_says_soon_that_nobody_selects(selector: PipelineSelector) -> None:
    with pytest.raises(Unavailable, match="none runs; start one with") as caught:
        asyncio.run(selector.preview("dry-run-1", WANTED))
    assert "pipeline" not in caught.value.fields, "asking again is of no use"


def test_a_dry_run_says_that_the_pipeline_is_on_its_way(
    selector: PipelineSelector, tmp_path: Path
) -> None:
    with Presence(tmp_path) as presence:
        with pytest.raises(Unavailable, match="it is starting; try again") as caught:
            asyncio.run(selector.preview("dry-run-1", WANTED))
        assert caught.value.fields == {"pipeline": "STARTING"}
        presence.tell(Present.SERVING)
        with pytest.raises(Unavailable, match="is holdfast pipeline run at work"):
            asyncio.run(selector.preview("dry-run-1", WANTED))


def test_a_dry_run_says_that_the_tables_catch_up(
    selector: PipelineSelector, tables: Tables, tmp_path: Path
) -> None:
    async def catch_up() -> None:
        asking = asyncio.create_task(selector.preview("dry-run-1", WANTED))
        await asyncio.sleep(0)  # it asks
        assert [each.name for each in open_requests(tmp_path)] == ["dry-run-1"]
        tables.publish({1: 3})
        await asking

    with Presence(tmp_path) as presence:
        presence.tell(Present.SERVING)
        with pytest.raises(Unavailable, match="its tables catch up; try again") as caught:
            asyncio.run(catch_up())
        assert caught.value.fields == {"pipeline": "CATCHING_UP"}


def test_an_operation_waits_as_long_as_the_pipeline_is_starting(
    selector: PipelineSelector, tmp_path: Path
) -> None:
    folder = folder_of(tmp_path, "batch-5")
    manifest = SelectionManifest(PROCESS_INSTANCES.name, 1, {}, EVERYTHING, EVERYTHING, {})

    def answer() -> None:
        folder.mkdir(parents=True)
        store_manifest(folder, manifest)

    with Presence(tmp_path):
        timer = threading.Timer(0.9, answer)  # three times its patience
        timer.start()
        found = asyncio.run(selector.snapshot("batch-5", WANTED))
        timer.join()
    assert found.manifest == manifest
