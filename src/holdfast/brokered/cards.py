"""What a member says of itself: to the group when it joins, and over the links to the others."""

from collections.abc import Mapping

import msgspec

from holdfast.groups.api import MemberId, name_of
from holdfast.logs import log


class BrokeredCard(msgspec.Struct, frozen=True, array_like=True):
    """How a member is reached, and by which key it is known.

    It is part of the generation. Later versions may add fields, and only at the end.
    """

    address: str  # where it listens for other members
    key: str  # its public key, in hexadecimal digits
    version: str  # of holdfast


class MemberSaid(msgspec.Struct, frozen=True, array_like=True):
    """How a member is now. Later versions may add fields, and only at the end."""

    epochs: dict[int, int]  # of the partitions that are open there, in the log
    url: str = ""  # where clients reach it
    is_draining: bool = False
    problems: tuple[str, ...] = ()


encode = msgspec.msgpack.Encoder().encode
decode_said = msgspec.msgpack.Decoder(MemberSaid).decode
_decode_card = msgspec.msgpack.Decoder(BrokeredCard).decode


def cards_by_name(cards: Mapping[MemberId, bytes]) -> tuple[dict[str, BrokeredCard], list[str]]:
    """The cards of a generation by the names of members, and what is wrong with them.

    Of two members that have one name, the start that sorts first is believed.
    """
    found: dict[str, BrokeredCard] = {}
    problems: list[str] = []
    for member in sorted(cards):
        name = name_of(member)
        try:
            card = _decode_card(cards[member])
        except msgspec.DecodeError as error:
            log.warning("a member's card is not understood", member=member, why=str(error))
            continue
        if found.setdefault(name, card).key != card.key:
            problems.append(
                f"Two members are named {name!r}; stop one of them, and start it with another name"
            )
    return found, problems
