"""`holdfast start`: a node over a folder, serving HTTP until it is told to stop."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.help_text import examples
from holdfast.cli.options import DEFAULT_FOLDER, Json
from holdfast.limits import PROCESSES_MAX

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
            "holdfast start ./data --pipeline     and tables in ./data/tables, kept fresh by Spark",
            "holdfast start ./data --authorization --host 0.0.0.0 --tls-certificate cert.pem"
            " --tls-key key.pem   others say who they are, over HTTPS",
            "holdfast start ./data --snapshot-store s3://backups/node-1   snapshots go to S3, too",
            "read -r line < <(holdfast start ./data --port 0 --json)   any port; wait until up",
        )
    )(start)
    app.command(hidden=True)(member)


def start(
    folder: Annotated[
        Path,
        typer.Argument(help="The data folder; a new one becomes a new node.", metavar="FOLDER"),
    ] = DEFAULT_FOLDER,
    partitions: Annotated[
        int | None, typer.Option(help="How many; fixed when the folder is first used.")
    ] = None,
    host: Annotated[str | None, typer.Option(help="Where to listen. [default: 127.0.0.1]")] = None,
    port: Annotated[
        int | None, typer.Option(help="0 takes any free port. [default: 8080]", min=0, max=65_535)
    ] = None,
    tls_certificate: Annotated[
        Path | None,
        typer.Option(
            help="Serve HTTPS with this certificate (PEM, with its chain). It is read again when it"
            " changes, and on SIGHUP.",
            metavar="FILE",
        ),
    ] = None,
    tls_key: Annotated[
        Path | None,
        typer.Option(help="Its key (PEM), if it is in another file.", metavar="FILE"),
    ] = None,
    allowed_hosts: Annotated[
        str | None,
        typer.Option(
            help="Further names by which clients call the node, with commas; * allows all.",
            metavar="NAMES",
        ),
    ] = None,
    allowed_origins: Annotated[
        str | None,
        typer.Option(
            help="Web pages that may use the node, as in https://ui.example.org, with commas.",
            metavar="ORIGINS",
        ),
    ] = None,
    snapshot_store: Annotated[
        str | None,
        typer.Option(
            help="Put each snapshot into this folder or s3://BUCKET/PREFIX, too. A node that lost"
            " its state starts from there and the log. Each node needs a folder or prefix of its"
            " own. Credentials of S3 come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
            metavar="URL",
        ),
    ] = None,
    log_level: Annotated[
        str | None, typer.Option(help="debug, info, warning or error. [default: warning]")
    ] = None,
    log_json: Annotated[bool, typer.Option("--log-json", help="Logs as JSON lines.")] = False,
    allow_remote: Annotated[
        bool,
        typer.Option(
            "--allow-remote-without-authorization",
            help="Listen beyond this machine. Anybody who reaches the port may then do anything.",
        ),
    ] = False,
    authorization: Annotated[
        bool,
        typer.Option(
            "--authorization",
            help="Everybody says who they are, and does what they may. The first start writes the"
            " token of an administrator to FOLDER/admin-token.",
        ),
    ] = False,
    pipeline: Annotated[
        bool,
        typer.Option("--pipeline", help="Keep tables in FOLDER/tables, too, by Spark."),
    ] = False,
    processes: Annotated[
        int | None,
        typer.Option(
            help="Divide the partitions among so many processes, to use the machine's cores; fixed"
            " when the folder is first used. [default: 1]",
            min=1,
            max=PROCESSES_MAX,
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            help="Be a member of the cluster that this etcd keeps: etcd://HOST:PORT, several with"
            " commas, etcds:// for TLS, USER:PASSWORD@ before the hosts.",
            metavar="URL",
        ),
    ] = None,
    member: Annotated[
        str | None,
        typer.Option(
            help="Its name in the cluster. [default: the beginning of its public key]",
            metavar="NAME",
        ),
    ] = None,
    listen_members: Annotated[
        str | None,
        typer.Option(
            help="Where it listens for other members, who reach it there. [default: 127.0.0.1:0,"
            " which is this machine alone]",
            metavar="HOST:PORT",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Start a node over a folder and serve it until SIGINT or SIGTERM.

    Settings come from the options, then HOLDFAST_* in the environment, then holdfast.toml in the
    folder. The line that it prints says that it is up: url, folder, partitions, and what recovery
    took.
    """
    from holdfast.config import load_config
    from holdfast.logs import configure

    config = load_config(
        folder, partitions=partitions, host=host, port=port, log_level=log_level,
        log_json=log_json or None, authorization=authorization or None,
        allowed_hosts=allowed_hosts, allowed_origins=allowed_origins,
        tls_certificate=_text(tls_certificate), tls_key=_text(tls_key),
        snapshot_store=snapshot_store, cluster=cluster, member=member,
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

    import uvloop

    from holdfast.layout import layout_of

    os.umask(0o077)  # what is stored is for its owner alone
    if config.cluster:
        from holdfast.cli.cluster.serving import serve_member
        from holdfast.errors import InvalidArgument

        if processes not in (None, 1):
            raise InvalidArgument(
                "Expected one process for a member of a cluster, but found --processes"
                f" {processes}; start several members on the machine instead"
            )
        uvloop.run(serve_member(folder, config, as_json=as_json, with_pipeline=with_pipeline))
        return
    divided = layout_of(folder).members
    processes = processes or divided
    if processes == divided == 1:
        from holdfast.cli.serving import serve_folder

        uvloop.run(serve_folder(folder, config, as_json=as_json, with_pipeline=with_pipeline))
        return
    from holdfast.cli.supervised import serve_members

    uvloop.run(
        serve_members(folder, config, processes, as_json=as_json, with_pipeline=with_pipeline)
    )


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
            f"Expected a loopback address, but found {host}: whoever reaches the port may do"
            " anything; add --authorization, or, if that is wanted,"
            " --allow-remote-without-authorization",
            host=host,
        )


def member(folder: Path, number: int) -> None:
    """Run one process of a node; `holdfast start --processes` does."""
    import os

    import uvloop

    from holdfast.cli.supervised import run_member

    os.umask(0o077)
    uvloop.run(run_member(folder, number))
