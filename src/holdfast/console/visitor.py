"""Who looks at a page, and what they may do.

The seam for signing in: `Signing` says who a visitor is, and what is shown to one who is not known.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from holdfast.console.page import ConsolePage, PageReply
from holdfast.engine.asker import Asker
from holdfast.errors import Unauthorized
from holdfast.gateway.access.access import Access
from holdfast.gateway.access.needs import Alternatives, Everyone, Need


@dataclass(frozen=True, slots=True)
class Visitor:
    """Somebody who looks at the console: services are called in their name."""

    asker: Asker | None = None  # None: nobody has to say who they are, and all may do everything
    access: Access | None = None
    can_sign_out: bool = False
    _asked: dict[Alternatives, bool] = field(default_factory=dict, compare=False, repr=False)

    @property
    def name(self) -> str:
        """As the page shows it; empty where nobody has to say."""
        return self.asker.sub if self.asker else ""

    @property
    def is_known(self) -> bool:
        """Whether they have signed in, or need not."""
        return self.access is None or self.asker is not None

    @property
    def identity(self) -> str:
        """Whom a form was made for."""
        return f"{self.asker.type}:{self.asker.sub}" if self.asker else ""

    async def may(self, need: Need) -> bool:
        """Whether they have a permission, with some resource at least."""
        if self.access is None or need is Everyone.ANYBODY:
            return True
        if self.asker is None:
            return False
        if need is Everyone.KNOWN:
            return True
        if need not in self._asked:  # a visitor is made for one request
            self._asked[need] = await self.access.lets_in(self.asker, need)
        return self._asked[need]

    async def may_with(self, need: Alternatives, id_: str) -> bool:
        """Whether they have one of some permissions for one resource: a process, a type of task."""
        if self.access is None:
            return True
        for right in need if self.asker is not None else ():
            if await self.access.allows(right, id_):
                return True
        return False


@dataclass(frozen=True, slots=True)
class PageHead:
    """What a request says before its body."""

    method: str
    path: str
    target: str  # the same as it was sent, with what is behind the question mark
    headers: Mapping[str, str]  # by their names in small letters
    cookies: Mapping[str, str]
    address: str  # of the client
    is_secure: bool  # by TLS

    @classmethod
    def of(cls, scope: Mapping[str, Any]) -> "PageHead":
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        cookies: dict[str, str] = {}
        for part in headers.get("cookie", "").split(";"):
            name, is_pair, value = part.strip().partition("=")
            if is_pair:
                cookies.setdefault(name, value)
        client = scope.get("client")
        query = scope["query_string"].decode("latin-1")
        target = scope["raw_path"].decode("latin-1") + (f"?{query}" if query else "")
        return cls(
            scope["method"], scope["path"], target, headers, cookies,
            client[0] if client else "", scope.get("scheme") == "https",
        )  # fmt: skip


class Signing(Protocol):
    """How visitors say who they are."""

    pages: tuple[ConsolePage, ...]  # of its own, such as the one to sign in at

    async def visitor(self, head: PageHead) -> Visitor:
        """Who sends a request; Unauthorized if they have to say so first."""
        ...

    def refuse(self, head: PageHead, error: Unauthorized) -> PageReply | None:
        """What a visitor gets who is not known: a page to sign in at. None: the error itself."""
        ...


class HeaderSigning:
    """Visitors as programs are: by the Authorization header, where the node wants to know."""

    pages: tuple[ConsolePage, ...] = ()

    def __init__(self, access: Access | None) -> None:
        self._access = access

    async def visitor(self, head: PageHead) -> Visitor:
        """Without authorization that is the operator, who may do everything."""
        if self._access is None:
            return Visitor()
        authorization = head.headers.get("authorization")
        encoded = None if authorization is None else authorization.encode("latin-1")
        asker = await self._access.admit(Everyone.KNOWN, encoded, head.address)
        return Visitor(asker, self._access)

    def refuse(self, head: PageHead, error: Unauthorized) -> PageReply | None:
        del head, error
        return None
