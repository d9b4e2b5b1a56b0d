"""The table of pages, in the order of the navigation. A new page is one line here."""

from holdfast.console.page import ConsolePage
from holdfast.console.pages import (
    batch,
    batch_creation,
    batches,
    cluster,
    content,
    find,
    groups,
    health,
    instance,
    instance_changes,
    instances,
    log,
    overview,
    tasks,
)

PAGES: tuple[ConsolePage, ...] = (
    *overview.PAGES,
    *instances.PAGES,
    *instance.PAGES,
    *instance_changes.PAGES,
    *tasks.PAGES,
    *batches.PAGES,
    *batch_creation.PAGES,
    *batch.PAGES,
    *log.PAGES,
    *find.PAGES,
    *health.PAGES,
    *cluster.PAGES,
    *groups.PAGES,
    *content.PAGES,
)
