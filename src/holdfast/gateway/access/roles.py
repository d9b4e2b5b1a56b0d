"""The roles that a node begins with. They are like any others: they can be changed and deleted."""

from holdfast.engine.identity.values import PERMISSIONS, Permission, ResourceType

FIRST_CLIENT = "admin"

_P = Permission
# CREATE on BATCH is for all types: those for single ones add nothing.
_SINGLE_BATCHES = {each for each in _P if each.startswith("CREATE_BATCH_OPERATION_")}
_READING = {_P.READ, _P.READ_PROCESS_DEFINITION, _P.READ_PROCESS_INSTANCE}
# The log itself has all of them on it.
_USERS_OWN = {
    ResourceType.TOKEN, ResourceType.USER, ResourceType.AUTHORIZATION, ResourceType.JOURNAL,
}  # fmt: skip

Role = tuple[str, str, dict[ResourceType, tuple[Permission, ...]]]

ROLES: tuple[Role, ...] = (
    (
        "admin",
        "may do everything",
        {
            each: tuple(sorted(permissions - _SINGLE_BATCHES))
            for each, permissions in PERMISSIONS.items()
        },
    ),
    (
        "reader",
        "sees everything but users, tokens, authorizations and the log, and changes nothing",
        {
            each: tuple(sorted(_READING & permissions))
            for each, permissions in PERMISSIONS.items()
            if _READING & permissions and each not in _USERS_OWN
        },
    ),
    (
        "worker",
        "leases jobs of every type and reports what became of them",
        {ResourceType.TASK: (_P.WORK,)},
    ),
)
"""Id, description, and what may be done with every resource of a type."""
