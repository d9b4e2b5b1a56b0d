"""A node over real HTTP and the public client of the REST API."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from camunda_orchestration_sdk import CamundaAsyncClient
from camunda_orchestration_sdk.models.process_instance_creation_instruction_base_variables import (
    ProcessInstanceCreationInstructionBaseVariables,
)
from camunda_orchestration_sdk.runtime.eventual import ConsistencyOptions

from holdfast.clock import SystemClock
from holdfast.gateway.batch.tables import OpenTables
from holdfast.gateway.http import HttpServer
from holdfast.gateway.service import Gateway
from holdfast.model.bpmn import write_bpmn
from holdfast.model.dsl import Process, error, path
from holdfast.testing import MemoryNode

ORDER = (
    Process("order", name="An order")
    .task(
        "charge", name="Charge it", retries=0, headers={"currency": "EUR"},
        on=[error("DECLINED", path().end())],
    )
    .wait("paid", message="payment", key="orderId")
)  # fmt: skip
AT_ONCE: Any = ConsistencyOptions(wait_up_to_ms=0)  # a search does not wait until it finds
UNKNOWN = "2251799813999999"


def file_of(process: Process, folder: Path) -> str:
    file = folder / f"{process.id}.bpmn"
    file.write_bytes(write_bpmn(process.definition()))
    return str(file)


def variables(**values: Any) -> ProcessInstanceCreationInstructionBaseVariables:
    return ProcessInstanceCreationInstructionBaseVariables.from_dict(values)


@asynccontextmanager
async def served(
    open_tables: OpenTables | None = None,
) -> AsyncIterator[tuple[CamundaAsyncClient, Gateway, str]]:
    """A client of a node in memory with two partitions, the node's gateway, and its URL."""
    node = MemoryNode(partitions=2, clock=SystemClock(), open_tables=open_tables)
    await node.start()
    server = HttpServer(node.gateway)
    await server.start()
    try:
        async with client_of(server.url) as client:
            yield client, node.gateway, server.url
    finally:
        await server.close()
        await node.close()


def client_of(url: str) -> CamundaAsyncClient:
    return CamundaAsyncClient(
        configuration={"CAMUNDA_REST_ADDRESS": url, "CAMUNDA_SDK_LOG_LEVEL": "silent"}
    )
