"""What one must be permitted for the commands about identity itself."""

from holdfast.engine.identity.values import (
    Permission,
    ResourceType,
    Token,
    TokenRef,
)
from holdfast.engine.kernel import Required
from holdfast.engine.state import EngineState
from holdfast.records import Record


def new_token(state: EngineState, command: Record) -> tuple[Required, ...]:
    new: Token = command.value
    return (Required(ResourceType.TOKEN, (Permission.CREATE,), (new.client_id,)),)


def known_token(state: EngineState, command: Record) -> tuple[Required, ...]:
    named: TokenRef = command.value
    stored = state.identities.tokens.get(named.id)
    ids = () if stored is None else (stored.token.client_id,)
    return (Required(ResourceType.TOKEN, (Permission.DELETE,), ids),)
