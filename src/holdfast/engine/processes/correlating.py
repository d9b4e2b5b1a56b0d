"""A message comes to the element that waits for it."""

from holdfast.engine.kernel import Turn
from holdfast.engine.messages import subscribing
from holdfast.engine.messages.values import Offer
from holdfast.engine.processes import happenings, ops
from holdfast.engine.processes.instances import is_ending, take_up
from holdfast.engine.processes.variables import from_json
from holdfast.engine.state import EngineState
from holdfast.records import Record


def correlate(turn: Turn[EngineState], command: Record) -> None:
    """The element goes on with the message, if it still waits."""
    offer: Offer = command.value
    processes = turn.state.processes
    subscription = processes.subscriptions.get(command.key)
    element = processes.elements.get(subscription.element) if subscription else None
    if subscription is None or element is None or is_ending(turn, element):
        subscribing.answer(turn, command.key, offer, taken=False)
        return
    walk = take_up(turn, element.instance)
    event = walk.plan.nodes[subscription.node]
    if event.element.interrupting:
        walk.do(ops.Unsubscribed(command.key, subscription.element, event.index))
    happenings.happen(walk, subscription.element, element, event, from_json(offer.variables))
    walk.run()
    walk.finish()
    subscribing.answer(turn, command.key, offer, taken=True)
