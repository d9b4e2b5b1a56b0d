"""The single changes that one step of an instance is made of.

A step moves tokens through many elements; each change is applied to the state as it is decided, and
all of them are one record on the log. Elements are named by their place in the definition.
"""

from enum import IntEnum

import msgspec


class Phase(IntEnum):
    """The phase of an element instance. The numbers are on disk."""

    ACTIVE = 0  # it waits for its job, its events, its children
    ENTERING = 1  # it has a token and has not begun: an incident, or too much for one step
    LEAVING = 2  # it is completed, and its outputs could not be evaluated
    TERMINATING = 3  # its children are being ended


class _Op(msgspec.Struct, frozen=True, array_like=True, gc=False, tag_field="tag"):
    """What all changes have in common: a tag that is on disk."""


class Began(_Op, frozen=True, tag=1):
    """An instance exists, with its variables in JSON and one token at its start."""

    variables: dict[str, bytes]
    parent: int = 0
    depth: int = 0
    keep_ms: int = 0
    lock: str = ""
    root: int = 0  # the instance at the root of its tree of calls; 0: itself


class Activated(_Op, frozen=True, tag=2):
    """An element instance exists."""

    key: int
    node: int
    scope: int
    phase: Phase = Phase.ACTIVE
    work: int = 0  # the job that it waits for, or the instance that it called
    item: int = 0  # of a multi-instance activity: its number from 1; -1 for the body around them


class Passed(_Op, frozen=True, tag=3):
    """A token went through an element that does not wait."""

    key: int
    node: int
    scope: int


class Completed(_Op, frozen=True, tag=4):
    """An element instance did what it is for, and is gone."""

    key: int
    node: int
    scope: int
    local: bool  # whether it had variables of its own


class Terminated(_Op, frozen=True, tag=5):
    """An element instance was ended before that, and is gone."""

    key: int
    node: int
    scope: int
    local: bool


class Changed(_Op, frozen=True, tag=6):
    """An element instance, or the instance itself, stands elsewhere."""

    key: int
    phase: Phase
    incident: int = 0
    then: int = -1  # TERMINATING: the boundary event that goes on afterwards
    work: int = 0


class Counted(_Op, frozen=True, tag=7):
    """How many tokens a scope has now."""

    scope: int
    tokens: int


class Arrived(_Op, frozen=True, tag=8):
    """A token waits in front of a joining gateway."""

    scope: int
    node: int
    flow: int  # which of the incoming flows it came by


class Joined(_Op, frozen=True, tag=9):
    """Waiting tokens became one: the first of each flow that has some."""

    scope: int
    node: int


class VariablesSet(_Op, frozen=True, tag=10):
    """Variables of a scope have new values, in JSON."""

    scope: int
    values: dict[str, bytes]


class TimerSet(_Op, frozen=True, tag=11):
    """An element waits for a time."""

    key: int
    element: int
    node: int  # the event: the element itself, a boundary event, one behind a gateway
    due_ms: int
    left: int = 1  # how many times more, this one included; -1: for ever
    cycle: str = ""
    moves: int = 0  # made without a wait so far, if this is none either


class TimerGone(_Op, frozen=True, tag=12):
    """The element no longer waits for that time."""

    key: int
    element: int
    node: int


class Subscribed(_Op, frozen=True, tag=13):
    """An element waits for a message."""

    key: int
    element: int
    node: int
    name: str
    correlation: str


class Unsubscribed(_Op, frozen=True, tag=14):
    """The element no longer waits for the message."""

    key: int
    element: int
    node: int


class LoopBegan(_Op, frozen=True, tag=15):
    """The items of a multi-instance activity, in JSON lists of bounded length."""

    body: int
    total: int
    chunks: tuple[bytes, ...]


class LoopTaken(_Op, frozen=True, tag=16):
    """Items up to this number have their instances."""

    body: int
    taken: int


class LoopDone(_Op, frozen=True, tag=17):
    """One item is done, with its result in JSON if results are collected."""

    body: int
    item: int
    result: bytes = b""


class LoopEnded(_Op, frozen=True, tag=18):
    """What was kept for a multi-instance activity is no longer needed."""

    body: int


class Ended(_Op, frozen=True, tag=19):
    """The instance is gone; its outcome stays for as long as was asked."""

    result: bytes = b""
    canceled: bool = False
    keep_ms: int = 0
    lock: str = ""


QUEUED = 1  # in the place of a due date: it goes on when its tree of calls does


class Deferred(_Op, frozen=True, tag=20):
    """The rest is too much for one step: it goes on at this time."""

    key: int
    due_ms: int  # or QUEUED
    moves: int = 0  # of an element: made without a wait so far


class Resumed(_Op, frozen=True, tag=21):
    """It goes on."""

    key: int
    due_ms: int


class Rebased(_Op, frozen=True, tag=22):
    """The instance follows another definition from now on."""

    definition: int


class Remapped(_Op, frozen=True, tag=23):
    """An element instance is an instance of another element from now on."""

    key: int
    node: int


class TokensRemapped(_Op, frozen=True, tag=24):
    """Tokens that were taken away wait in front of another joining gateway from now on."""

    scope: int
    node: int
    to: int
    tokens: tuple[int, ...]


class WaitRemapped(_Op, frozen=True, tag=25):
    """A timer or a subscription belongs to another event from now on."""

    element: int
    node: int
    to: int
    wait: int  # the timer or the subscription


class Remembered(_Op, frozen=True, tag=26):
    """The idempotency key that the instance was created with."""

    key: str
    window_ms: int


class TokensGone(_Op, frozen=True, tag=27):
    """Tokens that waited in front of a joining gateway are gone with their scope."""

    scope: int
    node: int


class TreePaced(_Op, frozen=True, tag=28):
    """When the deferred work of a tree of calls goes on, and what it has used up so far."""

    root: int
    due_ms: int  # 0: there is none, or it is held
    moves: int  # made without a wait
    held: int  # the element whose incident holds it; 0: none does
    granted: int  # how often a person has granted it another budget


class Headed(_Op, frozen=True, tag=29):
    """The headers that the instance was started with, for its jobs and the processes it calls."""

    headers: dict[str, str]


Op = (
    Began | Activated | Passed | Completed | Terminated | Changed | Counted | Arrived | Joined
    | VariablesSet | TimerSet | TimerGone | Subscribed | Unsubscribed | LoopBegan | LoopTaken
    | LoopDone | LoopEnded | Ended | Deferred | Resumed | Rebased | Remapped | TokensRemapped
    | WaitRemapped | Remembered | TokensGone | TreePaced | Headed
)  # fmt: skip
