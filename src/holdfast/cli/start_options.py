"""The options of `holdfast start`, by subject. Each is a type that the command gives a default."""

from pathlib import Path
from typing import Annotated

import typer

from holdfast.limits import PROCESSES_MAX

# --- the folder ---------------------------------------------------------------------------------
NodeFolder = Annotated[
    Path,
    typer.Argument(help="The data folder; a new one becomes a new node.", metavar="FOLDER"),
]
Partitions = Annotated[
    int | None, typer.Option(help="How many; fixed when the folder is first used.")
]
Processes = Annotated[
    int | None,
    typer.Option(
        help="Divide the partitions among this many processes, to use the machine's cores; fixed"
        " when the folder is first used. [default: 1]",
        min=1,
        max=PROCESSES_MAX,
    ),
]
SnapshotStore = Annotated[
    str | None,
    typer.Option(
        help="Put each snapshot into this folder or s3://BUCKET/PREFIX, too. A node that lost"
        " its state starts from there and the log. Each node needs a folder or prefix of its"
        " own. Credentials of S3 come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
        metavar="URL",
    ),
]
Pipeline = Annotated[
    bool,
    typer.Option("--pipeline", help="Also keep tables in FOLDER/tables, with Spark."),
]

# --- HTTP ---------------------------------------------------------------------------------------
Host = Annotated[str | None, typer.Option(help="Where to listen. [default: 127.0.0.1]")]
Port = Annotated[
    int | None, typer.Option(help="0 takes any free port. [default: 8080]", min=0, max=65_535)
]
TlsCertificate = Annotated[
    Path | None,
    typer.Option(
        help="Serve HTTPS with this certificate (PEM, with its chain). It is read again when it"
        " changes, and on SIGHUP.",
        metavar="FILE",
    ),
]
TlsKey = Annotated[
    Path | None,
    typer.Option(help="Its key (PEM), if it is in another file.", metavar="FILE"),
]

# --- who may use the node -----------------------------------------------------------------------
AllowedHosts = Annotated[
    str | None,
    typer.Option(
        help="Further names by which clients call the node, with commas; * allows all.",
        metavar="NAMES",
    ),
]
AllowedOrigins = Annotated[
    str | None,
    typer.Option(
        help="Web pages that may use the node, as in https://ui.example.org, with commas.",
        metavar="ORIGINS",
    ),
]
AllowRemote = Annotated[
    bool,
    typer.Option(
        "--allow-remote-without-authorization",
        help="Listen on a network without authorization: every client may do anything.",
    ),
]
Authorization = Annotated[
    bool,
    typer.Option(
        "--authorization",
        help="Authenticate and authorize every request. The first start writes the token of an"
        " administrator to FOLDER/admin-token.",
    ),
]

# --- logs ---------------------------------------------------------------------------------------
LogLevel = Annotated[
    str | None,
    typer.Option(
        help="debug, info, warning, error or critical. [default: warning]", metavar="LEVEL"
    ),
]
LogJson = Annotated[bool, typer.Option("--log-json", help="Logs as JSON lines.")]

# --- the log ------------------------------------------------------------------------------------
JournalUrl = Annotated[
    str | None,
    typer.Option(
        "--journal",
        help="Keep the log in this broker: kafka://HOST:PORT/NAME, several hosts with commas. All"
        " nodes with the same URL share its partitions, and take over from one another.",
        metavar="URL",
    ),
]

# --- the cluster --------------------------------------------------------------------------------
Cluster = Annotated[
    str | None,
    typer.Option(
        help="Join the cluster in this etcd: etcd://HOST:PORT, several with"
        " commas, etcds:// for TLS, USER:PASSWORD@ before the hosts.",
        metavar="URL",
    ),
]
MemberName = Annotated[
    str | None,
    typer.Option(
        help="Its name in the cluster. [default: the beginning of its public key]",
        metavar="NAME",
    ),
]
ListenMembers = Annotated[
    str | None,
    typer.Option(
        help="Where it listens for other members, who reach it there. [default: 127.0.0.1:0,"
        " which is this machine alone]",
        metavar="HOST:PORT",
    ),
]
