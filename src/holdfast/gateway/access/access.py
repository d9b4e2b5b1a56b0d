"""The door: who is let in, and to which endpoints."""

from collections.abc import Coroutine
from typing import Any

from holdfast.clock import Clock
from holdfast.config import Config
from holdfast.engine.asker import Asker
from holdfast.engine.identity.queries import FindAllowed, IsLetIn
from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.errors import Forbidden
from holdfast.gateway.access.asking import Asked
from holdfast.gateway.access.authentication import Authentication
from holdfast.gateway.access.needs import Alternatives, Everyone, Need

_NAMED_MAX = 2  # of the permissions that would do: the first is for most


class Access:
    """Decides about requests before anything is done for them."""

    def __init__(self, config: Config, clock: Clock, asked: Asked) -> None:
        self._asked = asked
        self._authentication = Authentication(config, clock, asked)

    async def admit(self, need: Need, authorization: bytes | None, address: str) -> Asker | None:
        """Who asks from an address for what has a need; None where nobody needs to say.

        Unauthorized or Forbidden if they may not have it.
        """
        if need is Everyone.ANYBODY:
            return None
        asker = await self._authentication.asker(authorization, address)
        if need is Everyone.KNOWN:
            return asker
        if not await self.lets_in(asker, need):
            named = [f"{permission} on some {each}" for each, permission in need[:_NAMED_MAX]]
            if len(need) > _NAMED_MAX:
                named.append("a narrower one")
            raise Forbidden(
                f"{asker.sub!r} lacks the permission {' or '.join(named)};"
                " an administrator can grant it"
            )
        return asker

    def signed_until_ms(self, token: str) -> Coroutine[Any, Any, int]:
        """Until when a token is valid that an issuer signed."""
        return self._authentication.signed_until_ms(token)

    def lets_in(self, asker: Asker, need: Alternatives) -> Coroutine[Any, Any, bool]:
        """Whether somebody has one of the permissions, with some resource at least."""
        return self._asked.ask_any(IsLetIn(asker, need))

    async def allows(self, right: tuple[ResourceType, Permission], id_: str) -> bool:
        """Whether the asker has a permission for one resource."""
        [allowed] = await self._asked.ask_any(FindAllowed((right,)))
        return allowed is None or id_ in allowed
