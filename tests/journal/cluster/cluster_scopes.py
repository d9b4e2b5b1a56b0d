"""How much the explorations let happen: whole for `make soak`, short for `make test`."""

from tests.journal.cluster.exploring import Scope

ALL, CHANGED = (0, 1, 2), (0, 1, 3)
TWO_TAKERS = Scope((ALL,) * 4, (3, 2, 1))
THREE_TAKERS = Scope((ALL,) * 5, (1, 1, 1, 1))
LOST_DISK = Scope((ALL,) * 4, (2, 1, 1), lost_disks=1)
OTHER_SET = Scope((ALL, CHANGED, CHANGED, CHANGED), (2, 1, 1))
CUTS = Scope((ALL,) * 4, (2, 1, 0), cuts=3, writes=2)
MOVES = Scope((ALL, CHANGED, CHANGED, CHANGED), (2, 1, 1), moves=True)
FEW = Scope((ALL,) * 4, (1, 1, 1))
FEW_CUTS = Scope((ALL,) * 4, (1, 0, 0), cuts=1, writes=1)
WHOLE = {
    "two takers": TWO_TAKERS,
    "three takers": THREE_TAKERS,
    "a lost disk": LOST_DISK,
    "another set": OTHER_SET,
    "cuts": CUTS,
    "planned moves": MOVES,
}
SHORT = {
    "two takers": Scope((ALL,) * 4, (2, 1, 0)),
    "a lost disk": Scope((ALL,) * 3, (2, 2), lost_disks=1),
    "another set": Scope((ALL, CHANGED, CHANGED), (2, 1)),
    "cuts": Scope((ALL,) * 3, (2, 1), cuts=2, writes=2),
    "planned moves": Scope((ALL, CHANGED, CHANGED), (2, 1), moves=True),
}

# Where writing and syncing are two steps
ONE_ENTRY = Scope((ALL,) * 3, (1, 0))
LATE_SHORT = Scope((ALL,) * 3, (1, 1))
LATE_WHOLE = {
    "one taker": Scope((ALL,) * 3, (2, 1)),
    "planned moves": Scope((ALL, CHANGED, CHANGED), (1, 1), moves=True),
}
