"""`holdfast start`: a node over a folder, serving HTTP until it is told to stop."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from holdfast.cli import start_options as options
from holdfast.cli.help_text import examples
from holdfast.cli.options import DEFAULT_FOLDER, Json

if TYPE_CHECKING:
    from holdfast.config import Config


def register(app: typer.Typer) -> None:
    """Adds the verb to the command."""
    app.command(
        epilog=examples(
            "holdfast start                       the folder ./data, at http://127.0.0.1:8080",
            "holdfast start ./data --port 9000 --partitions 16",
            "holdfast start ./data --processes 4  one address, four cores in use",
            "holdfast start ./data --cluster etcd://10.0.0.5:2379   a member of a cluster",
            "holdfast start ./data --cluster etcd://10.0.0.5 --listen-members 10.0.0.7:8081"
            " --host 10.0.0.7 --authorization",
            "holdfast start ./data --journal kafka://10.0.0.5:9092/orders   Kafka keeps the log;"
            " nodes share it",
            "holdfast start ./data --pipeline     and tables in ./data/tables, kept fresh by Spark",
            "holdfast start ./data --authorization --host 0.0.0.0 --tls-certificate cert.pem"
            " --tls-key key.pem   clients authenticate themselves, over HTTPS",
            "holdfast start ./data --snapshot-store s3://backups/node-1   snapshots go to S3, too",
            "read -r line < <(holdfast start ./data --port 0 --json)   any port; wait until up",
        )
    )(start)
    app.command(hidden=True)(member)


def start(
    folder: options.NodeFolder = DEFAULT_FOLDER,
    partitions: options.Partitions = None,
    host: options.Host = None,
    port: options.Port = None,
    tls_certificate: options.TlsCertificate = None,
    tls_key: options.TlsKey = None,
    allowed_hosts: options.AllowedHosts = None,
    allowed_origins: options.AllowedOrigins = None,
    snapshot_store: options.SnapshotStore = None,
    log_level: options.LogLevel = None,
    log_json: options.LogJson = False,
    allow_remote: options.AllowRemote = False,
    authorization: options.Authorization = False,
    pipeline: options.Pipeline = False,
    processes: options.Processes = None,
    journal: options.JournalUrl = None,
    cluster: options.Cluster = None,
    member: options.MemberName = None,
    listen_members: options.ListenMembers = None,
    json: Json = False,
) -> None:
    """Start a node over a folder and serve it until SIGINT or SIGTERM.

    Settings come from the options, then HOLDFAST_* in the environment, then holdfast.toml in the
    folder. When it is up, it prints a line: URL, folder, partitions, and the time of the recovery.
    """
    from holdfast.config import load_config
    from holdfast.logs import configure

    config = load_config(
        folder, partitions=partitions, host=host, port=port, log_level=log_level,
        log_json=log_json or None, authorization=authorization or None,
        allowed_hosts=allowed_hosts, allowed_origins=allowed_origins,
        tls_certificate=_text(tls_certificate), tls_key=_text(tls_key),
        snapshot_store=snapshot_store, journal=journal, cluster=cluster, member=member,
        member_address=listen_members,
    )  # fmt: skip
    if not config.authorization:
        _check_host(config.host, allow_remote)
    configure(json=config.log_json, level=config.log_level)
    if pipeline:
        from holdfast.cli.extras import check_installed

        check_installed()
    _serve(folder, config, processes, as_json=json, with_pipeline=pipeline)


def _serve(
    folder: Path, config: "Config", processes: int | None, *, as_json: bool, with_pipeline: bool
) -> None:
    """A node of one process, or of as many as are asked for or as its folder has."""
    import os

    from holdfast.event_loop import run
    from holdfast.layout import layout_of

    os.umask(0o077)  # what is stored is for its owner alone
    if config.cluster or config.journal:
        from holdfast.cli.cluster.serving import serve_member
        from holdfast.errors import InvalidArgument

        if config.cluster and config.journal:
            raise InvalidArgument(
                "Expected one place for the log, but found --cluster and --journal: with --cluster"
                " the members keep it, with --journal a broker does"
            )
        if processes not in (None, 1):
            raise InvalidArgument(
                "Expected one process for a member of a cluster, but found --processes"
                f" {processes}; start several members on the machine instead"
            )
        run(serve_member(folder, config, as_json=as_json, with_pipeline=with_pipeline))
        return
    divided = layout_of(folder).members
    processes = processes or divided
    if processes == divided == 1:
        from holdfast.cli.serving import serve_folder

        run(serve_folder(folder, config, as_json=as_json, with_pipeline=with_pipeline))
        return
    from holdfast.cli.supervised import serve_members

    run(serve_members(folder, config, processes, as_json=as_json, with_pipeline=with_pipeline))


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


def _check_host(host: str, allow_remote: bool) -> None:
    """Without authorization only this machine may be let in by accident."""
    from ipaddress import ip_address

    from holdfast.errors import InvalidArgument

    try:
        is_here = host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        is_here = False
    if not is_here and not allow_remote:
        raise InvalidArgument(
            f"Expected a loopback address, but found {host}: without authorization any client"
            " that reaches the port may do anything; add --authorization, or, if you want that,"
            " --allow-remote-without-authorization",
            host=host,
        )


def member(folder: Path, number: int) -> None:
    """Run one process of a node; `holdfast start --processes` does."""
    import os

    from holdfast.cli.supervised import run_member
    from holdfast.event_loop import run

    os.umask(0o077)
    run(run_member(folder, number))
