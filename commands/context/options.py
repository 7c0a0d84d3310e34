"""The options of `kctl context add`, some of which other commands share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

Protected = Annotated[
    bool | None,
    typer.Option(
        "--protected/--no-protected",
        help="Require typing the context's name before changes (default: no; with --replace: as before).",
        show_default=False,
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be written, without writing it.")]


@dataclass(frozen=True)
class AddOptions:
    """The options of `kctl context add`."""

    security_protocol: Annotated[
        str, typer.Option(metavar="PROTOCOL", help="PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.")
    ] = "PLAINTEXT"
    sasl_mechanism: Annotated[
        str | None, typer.Option(metavar="MECHANISM", help="PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.")
    ] = None
    sasl_username: Annotated[str | None, typer.Option(metavar="USER", help="User to log in as.")] = None
    sasl_password_env: Annotated[
        str | None, typer.Option(metavar="VARIABLE", help="Environment variable that holds the password.")
    ] = None
    sasl_password_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="File that holds the password; one trailing newline is ignored.")
    ] = None
    ssl_cafile: Annotated[
        str | None, typer.Option(metavar="FILE", help="PEM file with trusted CAs (default: the system's).")
    ] = None
    ssl_certfile: Annotated[str | None, typer.Option(metavar="FILE", help="PEM file with the client certificate.")] = (
        None
    )
    ssl_keyfile: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="PEM file with the client key (default: in the --ssl-certfile file)."),
    ] = None
    ssl_key_password_env: Annotated[
        str | None, typer.Option(metavar="VARIABLE", help="Environment variable that holds the key password.")
    ] = None
    ssl_key_password_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="File that holds the key password.")
    ] = None
    ssl_check_hostname: Annotated[
        bool, typer.Option(help="Verify that the broker's certificate matches its host name.")
    ] = True
    protected: Protected = None
    current: Annotated[
        bool, typer.Option("--use", help="Make it the current context; the first context always becomes current.")
    ] = False
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite an existing context that differs.")] = False
    dry_run: DryRun = False
