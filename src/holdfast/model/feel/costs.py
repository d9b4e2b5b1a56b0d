"""What a part of an expression costs each time it is evaluated, but for what its values add.

A step is about 0.1 us. These costs are added up when the expression is compiled, and drawn at
once: by the expression when it begins, by a loop for every item, by a function for every call.
What depends on the values (long texts, lists, decimals) is drawn where it is done.
"""

from holdfast.model.feel import syntax as s
from holdfast.model.feel.run import CHARS_PER_STEP, Cost

STEPS: dict[type, int] = {
    s.Negate: 10,
    s.Between: 30,
    s.Membership: 5,
    s.Test: 15,
    s.InstanceOf: 10,
    s.RangeOf: 12,
    s.UnaryRange: 25,
    s.Path: 2,
    s.Define: 60,
    s.Call: 15,
}  # by kind, where it is not one
LIST_BYTES, ITEM_BYTES = 64, 40
CONTEXT_BYTES, ENTRY_BYTES = 160, 80
RESULT_BYTES = 104  # of a call: a decimal, a range or a date and time


def cost_of(node: s.Node) -> Cost:
    """The cost of a part alone, without those in it."""
    match node:
        case s.Literal(value=str() as text):
            return Cost(1 + len(text) // CHARS_PER_STEP, 0)  # as often as it is compared
        case s.ListOf(items=items):
            return Cost(2 + len(items), LIST_BYTES + ITEM_BYTES * len(items))
        case s.ContextOf(entries=entries):
            return Cost(2 + len(entries), CONTEXT_BYTES + ENTRY_BYTES * len(entries))
        case s.Arithmetic(rest=rest):
            return Cost(len(rest), 0)
        case s.Membership(tests=tests):
            return Cost(STEPS[s.Membership] + STEPS[s.Test] * len(tests), 0)
        case s.RangeOf() | s.UnaryRange():
            return Cost(STEPS[type(node)], RESULT_BYTES)
        case s.Call(arguments=arguments):
            return Cost(STEPS[s.Call] + 5 * len(arguments), RESULT_BYTES)
        case _:
            return Cost(STEPS.get(type(node), 1), 0)
