"""Subscribers: each takes in the packages of some publishers, in their order, each one once."""

from holdfast.content.subscriber.conditions import SubscriberCondition
from holdfast.content.subscriber.decisions import FOR_EVER, Admission, Habits
from holdfast.content.subscriber.subscriber import Subscriber, SubscriberExtras

__all__ = [
    "FOR_EVER",
    "Admission",
    "Habits",
    "Subscriber",
    "SubscriberCondition",
    "SubscriberExtras",
]
