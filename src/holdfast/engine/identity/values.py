"""The words of identity: who asks, and what they may do."""

from enum import IntEnum, StrEnum

import msgspec

from holdfast.records import Value

QUEUE = "identity"  # every partition hears of it in the order in which it was decided
DECIDING_PARTITION = 1
EVERY_ID = "*"


class UserIntent(IntEnum):
    """Commands and events of users. The numbers are on disk."""

    CREATE = 0
    CREATED = 1
    UPDATE = 2
    UPDATED = 3
    DELETE = 4
    DELETED = 5


class GroupIntent(IntEnum):
    """Commands and events of groups and roles. The numbers are on disk."""

    CREATE = 0
    CREATED = 1
    UPDATE = 2
    UPDATED = 3
    DELETE = 4
    DELETED = 5
    ADD_MEMBER = 6
    MEMBER_ADDED = 7
    REMOVE_MEMBER = 8
    MEMBER_REMOVED = 9


class TokenIntent(IntEnum):
    """Commands and events of tokens. The numbers are on disk."""

    CREATE = 0
    CREATED = 1
    DELETE = 2
    DELETED = 3


class AuthorizationIntent(IntEnum):
    """Commands and events of authorizations. The numbers are on disk."""

    CREATE = 0
    CREATED = 1
    UPDATE = 2
    UPDATED = 3
    DELETE = 4
    DELETED = 5


class OwnerType(StrEnum):
    """The kind of owner of an authorization, or of a member."""

    USER = "USER"
    CLIENT = "CLIENT"  # a machine
    GROUP = "GROUP"
    ROLE = "ROLE"


class ResourceType(StrEnum):
    """What an authorization is about; in brackets what names one of them."""

    AUTHORIZATION = "AUTHORIZATION"
    BATCH = "BATCH"
    CONTENT = "CONTENT"  # by the name of the publisher
    DISTRIBUTION = "DISTRIBUTION"
    GROUP = "GROUP"  # by its id
    JOURNAL = "JOURNAL"
    MESSAGE = "MESSAGE"  # by its name
    PARTITION_GROUP = "PARTITION_GROUP"  # members that share partitions, by the name of the group
    PROCESS_DEFINITION = "PROCESS_DEFINITION"  # by the id of the process
    RESOURCE = "RESOURCE"  # what is deployed, by the id of the process
    ROLE = "ROLE"  # by its id
    SCHEDULE = "SCHEDULE"  # by its id
    SYSTEM = "SYSTEM"
    TASK = "TASK"  # by the type of the job
    TOKEN = "TOKEN"  # by the client's id
    TRANSACTION = "TRANSACTION"  # to read open transactions; operations need their own
    USER = "USER"  # by the name


NAMELESS = frozenset(
    {
        ResourceType.AUTHORIZATION, ResourceType.BATCH, ResourceType.DISTRIBUTION,
        ResourceType.JOURNAL, ResourceType.SYSTEM, ResourceType.TRANSACTION,
    }
)  # fmt: skip
"""What has no name of its own: it is permitted as a whole, with EVERY_ID."""


class Permission(StrEnum):
    """What may be done with a resource."""

    CREATE = "CREATE"
    READ = "READ"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    WORK = "WORK"  # lease jobs and report outcomes; join a group that shares partitions
    PUBLISH = "PUBLISH"  # packages of a publisher, and see its queues
    SUBSCRIBE = "SUBSCRIBE"  # read a publisher's packages and report outcomes
    ADMINISTER = "ADMINISTER"  # see and change a publisher's queues
    READ_PROCESS_DEFINITION = "READ_PROCESS_DEFINITION"
    CREATE_PROCESS_INSTANCE = "CREATE_PROCESS_INSTANCE"
    READ_PROCESS_INSTANCE = "READ_PROCESS_INSTANCE"
    UPDATE_PROCESS_INSTANCE = "UPDATE_PROCESS_INSTANCE"
    MODIFY_PROCESS_INSTANCE = "MODIFY_PROCESS_INSTANCE"
    CANCEL_PROCESS_INSTANCE = "CANCEL_PROCESS_INSTANCE"
    DELETE_PROCESS_INSTANCE = "DELETE_PROCESS_INSTANCE"
    CREATE_BATCH_OPERATION_CANCEL_PROCESS_INSTANCE = (
        "CREATE_BATCH_OPERATION_CANCEL_PROCESS_INSTANCE"
    )
    CREATE_BATCH_OPERATION_MODIFY_PROCESS_INSTANCE = (
        "CREATE_BATCH_OPERATION_MODIFY_PROCESS_INSTANCE"
    )
    CREATE_BATCH_OPERATION_MIGRATE_PROCESS_INSTANCE = (
        "CREATE_BATCH_OPERATION_MIGRATE_PROCESS_INSTANCE"
    )
    CREATE_BATCH_OPERATION_DELETE_PROCESS_INSTANCE = (
        "CREATE_BATCH_OPERATION_DELETE_PROCESS_INSTANCE"
    )
    CREATE_BATCH_OPERATION_RESOLVE_INCIDENT = "CREATE_BATCH_OPERATION_RESOLVE_INCIDENT"
    CREATE_BATCH_OPERATION_RETRY_TASK = "CREATE_BATCH_OPERATION_RETRY_TASK"
    CREATE_BATCH_OPERATION_DISCARD_TASK = "CREATE_BATCH_OPERATION_DISCARD_TASK"


_R, _P = ResourceType, Permission
_ALL_FOUR = frozenset({_P.CREATE, _P.READ, _P.UPDATE, _P.DELETE})

PERMISSIONS: dict[ResourceType, frozenset[Permission]] = {
    _R.AUTHORIZATION: _ALL_FOUR,
    _R.BATCH: frozenset(
        {_P.CREATE, _P.READ, _P.UPDATE}
        | {each for each in _P if each.startswith("CREATE_BATCH_OPERATION_")}
    ),
    _R.CONTENT: frozenset({_P.PUBLISH, _P.SUBSCRIBE, _P.ADMINISTER}),
    _R.DISTRIBUTION: frozenset({_P.READ, _P.UPDATE}),
    _R.GROUP: _ALL_FOUR,
    _R.JOURNAL: frozenset({_P.READ}),
    _R.MESSAGE: frozenset({_P.CREATE, _P.READ}),
    _R.PARTITION_GROUP: frozenset({_P.READ, _P.UPDATE, _P.WORK}),
    _R.PROCESS_DEFINITION: frozenset(
        {
            _P.READ_PROCESS_DEFINITION, _P.CREATE_PROCESS_INSTANCE, _P.READ_PROCESS_INSTANCE,
            _P.UPDATE_PROCESS_INSTANCE, _P.MODIFY_PROCESS_INSTANCE, _P.CANCEL_PROCESS_INSTANCE,
            _P.DELETE_PROCESS_INSTANCE,
        }
    ),
    _R.RESOURCE: frozenset({_P.CREATE}),
    _R.ROLE: _ALL_FOUR,
    _R.SCHEDULE: frozenset({_P.READ, _P.UPDATE, _P.DELETE}),
    _R.SYSTEM: frozenset({_P.READ, _P.UPDATE}),
    _R.TASK: frozenset({_P.CREATE, _P.READ, _P.UPDATE, _P.WORK}),
    _R.TOKEN: frozenset({_P.CREATE, _P.READ, _P.DELETE}),
    _R.TRANSACTION: frozenset({_P.READ}),
    _R.USER: _ALL_FOUR,
}  # fmt: skip
"""What can be permitted about which resource."""


class User(Value, frozen=True, tag=112):
    """A person: USER CREATE(D), UPDATE(D)."""

    username: str
    name: str = ""
    email: str = ""
    password: bytes = b""  # its hash; empty: no sign-in by password


class UserRef(Value, frozen=True, tag=113):
    """Only the person: USER DELETE(D)."""

    username: str


class Group(Value, frozen=True, tag=114):
    """A group or a role: CREATE(D), UPDATE(D)."""

    id: str
    name: str = ""
    description: str = ""


class GroupRef(Value, frozen=True, tag=115):
    """Only the group or role: DELETE(D)."""

    id: str


class Membership(Value, frozen=True, tag=116):
    """A member of a group, or who has a role: ADD_MEMBER, MEMBER_ADDED, REMOVE_*, *_REMOVED."""

    id: str  # of the group or role
    member_type: OwnerType
    member_id: str


class Token(Value, frozen=True, tag=117):
    """A token of a machine, or a session of the console: TOKEN CREATE(D).

    The record has a digest only, from which the token cannot be derived.
    """

    id: str
    client_id: str  # of a session: the user
    digest: bytes
    expires_ms: int = 0  # 0: never
    signed_in: OwnerType | None = None  # None: a token of a machine; else as what they signed in
    groups: tuple[str, ...] = ()  # of a session: the groups from the identity provider
    basis: str = ""  # of a session: the token or password that it ends with; "": an issuer's word


class TokenRef(Value, frozen=True, tag=118):
    """Only the token: TOKEN DELETE(D)."""

    id: str


class Authorization(Value, frozen=True, tag=119):
    """Permissions on a resource: AUTHORIZATION CREATE(D), UPDATE(D)."""

    owner_type: OwnerType
    owner_id: str
    resource_type: ResourceType
    resource_id: str  # EVERY_ID: all there are
    permissions: tuple[Permission, ...]
    authorization: int = 0  # UPDATE(D): which one


class AuthorizationRef(Value, frozen=True, tag=120):
    """Only the authorization: DELETE(D)."""

    authorization: int


USER_VALUES: dict[UserIntent, type[msgspec.Struct]] = {
    UserIntent.CREATE: User,
    UserIntent.CREATED: User,
    UserIntent.UPDATE: User,
    UserIntent.UPDATED: User,
    UserIntent.DELETE: UserRef,
    UserIntent.DELETED: UserRef,
}
GROUP_VALUES: dict[GroupIntent, type[msgspec.Struct]] = {
    GroupIntent.CREATE: Group,
    GroupIntent.CREATED: Group,
    GroupIntent.UPDATE: Group,
    GroupIntent.UPDATED: Group,
    GroupIntent.DELETE: GroupRef,
    GroupIntent.DELETED: GroupRef,
    GroupIntent.ADD_MEMBER: Membership,
    GroupIntent.MEMBER_ADDED: Membership,
    GroupIntent.REMOVE_MEMBER: Membership,
    GroupIntent.MEMBER_REMOVED: Membership,
}
TOKEN_VALUES: dict[TokenIntent, type[msgspec.Struct]] = {
    TokenIntent.CREATE: Token,
    TokenIntent.CREATED: Token,
    TokenIntent.DELETE: TokenRef,
    TokenIntent.DELETED: TokenRef,
}
AUTHORIZATION_VALUES: dict[AuthorizationIntent, type[msgspec.Struct]] = {
    AuthorizationIntent.CREATE: Authorization,
    AuthorizationIntent.CREATED: Authorization,
    AuthorizationIntent.UPDATE: Authorization,
    AuthorizationIntent.UPDATED: Authorization,
    AuthorizationIntent.DELETE: AuthorizationRef,
    AuthorizationIntent.DELETED: AuthorizationRef,
}
