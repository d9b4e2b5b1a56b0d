"""What an operation or an endpoint needs: the words for it, which stand in each one's own row.

It is what somebody must be permitted with at least one resource, to be let in at all. With which
one exactly is decided where the resource is known: commands by the partition that does them, by the
needs in the tables of their domains, and readers see only what they may.
"""

from enum import Enum

from holdfast.engine.identity.values import Permission, ResourceType

_R, _P = ResourceType, Permission


class Everyone(Enum):
    """Endpoints that need no permission."""

    ANYBODY = "anybody"  # without saying who they are
    KNOWN = "known"  # everybody who is authenticated


Alternatives = tuple[tuple[ResourceType, Permission], ...]
"""Permissions of which one is enough."""

Need = Alternatives | Everyone


def one(resource: ResourceType, permission: Permission) -> Alternatives:
    """One permission, and no other will do."""
    return ((resource, permission),)


def of_process(permission: Permission) -> Alternatives:
    """A permission for a process definition."""
    return one(_R.PROCESS_DEFINITION, permission)


def of_batch(*types: str) -> Alternatives:
    """The permission for all types of batch operations, or that for any one of some."""
    some = [each for each in _P if each.startswith("CREATE_BATCH_OPERATION_")]
    wanted = [f"CREATE_BATCH_OPERATION_{type_}" for type_ in types]
    chosen = [each for each in some if not types or each in wanted]
    return ((_R.BATCH, _P.CREATE), *((_R.BATCH, each) for each in chosen))


READ_DEFINITION = of_process(_P.READ_PROCESS_DEFINITION)
READ_INSTANCE = of_process(_P.READ_PROCESS_INSTANCE)
UPDATE_INSTANCE = of_process(_P.UPDATE_PROCESS_INSTANCE)
WORK = one(_R.TASK, _P.WORK)
# Some are about tasks as well as about the jobs of processes.
READ_JOB = (*one(_R.TASK, _P.READ), *READ_INSTANCE)
UPDATE_JOB = (*one(_R.TASK, _P.UPDATE), *UPDATE_INSTANCE)
