"""The table of pages, in the order of the navigation. A new page is one line here."""

from holdfast.console.page import ConsolePage
from holdfast.console.pages import find, instance, instance_changes, instances, overview, tasks

PAGES: tuple[ConsolePage, ...] = (
    *overview.PAGES,
    *instances.PAGES,
    *instance.PAGES,
    *instance_changes.PAGES,
    *tasks.PAGES,
    *find.PAGES,
)
