"""The tables of content distribution: their columns, and what each means."""

from holdfast.pipeline.schema.columns import Column, ColumnKind, Table, long, text, time, whole

CONTENT_PACKAGES = Table(
    "content_packages",
    "every package that was published",
    (
        long("position", "its offset in the topic of packages"),
        text("publisher", "whose it is"),
        long("number", "counts the publisher's packages from 1"),
        text("package_id", "names it"),
        text("action", "ADD, DELETE, INVALIDATE or TEST"),
        text("paths", "its paths, as a JSON list"),
        text("deep_paths", "of them, those that include their subtrees, as a JSON list"),
        long("size_bytes", "of the package, without the binaries that are elsewhere"),
        whole("binaries", "how many binaries are elsewhere"),
        text("blob", "where the package itself is, if it was too large for the log"),
        text("user", "who published it"),
        text("metadata", "metadata from the publisher, as JSON"),
        time("published", "when"),
    ),
    is_history=True,
)

CONTENT_DELIVERIES = Table(
    "content_deliveries",
    "outcomes of packages at editable subscribers, and of failed packages",
    (
        long("position", "in the topic of statuses"),
        text("subscriber", "where"),
        text("publisher", "of the package"),
        long("package_position", "the offset of the package"),
        long("number", "of the publisher's packages"),
        text("package_id", "names the package"),
        text("outcome", "IMPORTED, REMOVED or REMOVED_FAILED"),
        text("reason", "why it failed"),
        whole("attempts", "how often it was tried"),
        time("ended", "when, by the subscriber's clock"),
    ),
    is_history=True,
)

CONTENT_SUBSCRIBERS = Table(
    "content_subscribers",
    "offsets that subscribers announced",
    (
        long("position", "in the topic of discoveries"),
        text("subscriber", "who"),
        text("publisher", "whose packages"),
        long("package_position", "the offset of the last package that it has done with"),
        long("number", "of that package"),
        whole("retries", "attempts at the next package"),
        text("reason", "why the next package fails"),
        Column("editable", ColumnKind.FLAG, "whether its queue may be cleared"),
        whole("retries_max", "retries before a package fails; -1: no limit"),
        Column("ready", ColumnKind.FLAG, "whether it has caught up since it started"),
        long("imported", "packages since it started"),
        long("imported_bytes", "of them"),
        long("import_ms", "that importing them took"),
        text("host", "where it runs"),
        time("heard", "when"),
    ),
    is_history=True,
)
