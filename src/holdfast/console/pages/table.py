"""The table of pages, in the order of the navigation. A new page is one line here."""

from holdfast.console.page import ConsolePage
from holdfast.console.pages import overview

PAGES: tuple[ConsolePage, ...] = (*overview.PAGES,)
