"""All endpoints: one for each operation, and those that are more or less than an operation.

Those of the Orchestration Cluster REST API are in the package `rest`. A `listing` shows what
the node itself knows now; a `search` asks the tables.
"""

from holdfast.engine.batch.values import BatchOperationType
from holdfast.engine.identity.values import OwnerType, Permission, ResourceType
from holdfast.errors import Unavailable
from holdfast.gateway.access.needs import of_batch, one
from holdfast.gateway.api import SPACES, Api, namespace
from holdfast.gateway.batch.shapes import (
    BatchOperationReceipt,
    BatchRequest,
    BatchResolution,
    NewBatchOperation,
)
from holdfast.gateway.endpoint import Endpoint, endpoint, endpoints_of, serves
from holdfast.gateway.identity.shapes import Groups
from holdfast.gateway.node.api import NodeApi
from holdfast.gateway.node.shapes import Health
from holdfast.gateway.rest.endpoints import REST_ENDPOINTS
from holdfast.gateway.tasks.shapes import NewTask, TaskReceipt

_T, _R, _P = BatchOperationType, ResourceType, Permission
_WORKING = frozenset({"UP", "CHECKING", "DEGRADED"})


@endpoint("POST", "/v2/tasks", one(_R.TASK, _P.CREATE))
async def submit_task(api: Api, body: NewTask) -> TaskReceipt:
    """Submit a task."""
    [receipt] = await api.tasks.submit([body])
    return receipt


@endpoint("POST", "/v2/tasks/retry", of_batch("RETRY_TASK"))
async def retry_tasks(api: Api, body: BatchResolution) -> BatchOperationReceipt:
    """Try all tasks again that wait for a person and that a filter chooses."""
    return await api.batches.create(_batch(_T.RETRY_TASK, body, body.retries))


@endpoint("POST", "/v2/tasks/discard", of_batch("DISCARD_TASK"))
async def discard_tasks(api: Api, body: BatchRequest) -> BatchOperationReceipt:
    """Give up all tasks that wait for a person and that a filter chooses."""
    return await api.batches.create(_batch(_T.DISCARD_TASK, body))


def _batch(
    type_: BatchOperationType, body: BatchRequest | BatchResolution, retries: int = 0
) -> NewBatchOperation:
    return NewBatchOperation(
        type=type_,
        filter=body.filter,
        retries=retries,
        throttle=body.throttle,
        priority=body.priority,
        dry_run=body.dry_run,
    )


@endpoint("GET", "/v2/groups", one(_R.GROUP, _P.READ))
async def list_groups(api: Api) -> Groups:
    """List all groups with their members."""
    return await api.identity.groups(OwnerType.GROUP)


@endpoint("GET", "/v2/roles", one(_R.ROLE, _P.READ))
async def list_roles(api: Api) -> Groups:
    """List all roles with those who have them."""
    return await api.identity.groups(OwnerType.ROLE)


@serves(NodeApi.health)
async def get_health(api: Api) -> Health:
    """Tell how the node is; costs it nothing. While it cannot work it is 503."""
    health = await api.node.health()
    if health.status not in _WORKING:
        raise Unavailable(f"The node is {health.status}: {'; '.join(health.damage)}")
    return health


def _endpoints() -> tuple[Endpoint, ...]:
    """An operation that a function serves is not served a second time."""
    functions = (
        submit_task, retry_tasks, discard_tasks, list_groups, list_roles, *REST_ENDPOINTS,
        get_health,
    )  # fmt: skip
    served = {each.name for each in functions}
    derived = [each for space in SPACES for each in endpoints_of(space, namespace(space))]
    return (*[each for each in derived if each.name not in served], *functions)


ENDPOINTS = _endpoints()
