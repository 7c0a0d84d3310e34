"""The options of `kctl context add`."""

from __future__ import annotations

from typing import Annotated

import typer

SecurityProtocol = Annotated[str, typer.Option(metavar="PROTOCOL", help="PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.")]
SaslMechanism = Annotated[str | None, typer.Option(metavar="MECHANISM", help="PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.")]
SaslUsername = Annotated[str | None, typer.Option(metavar="USER", help="User to log in as.")]
SaslPasswordEnv = Annotated[
    str | None, typer.Option(metavar="VARIABLE", help="Environment variable that holds the password.")
]
SaslPasswordFile = Annotated[
    str | None, typer.Option(metavar="FILE", help="File that holds the password; one trailing newline is ignored.")
]
SslCafile = Annotated[
    str | None, typer.Option(metavar="FILE", help="PEM file with trusted CAs (default: the system's).")
]
SslCertfile = Annotated[str | None, typer.Option(metavar="FILE", help="PEM file with the client certificate.")]
SslKeyfile = Annotated[
    str | None, typer.Option(metavar="FILE", help="PEM file with the client key (default: in the --ssl-certfile file).")
]
SslKeyPasswordEnv = Annotated[
    str | None, typer.Option(metavar="VARIABLE", help="Environment variable that holds the key password.")
]
SslKeyPasswordFile = Annotated[str | None, typer.Option(metavar="FILE", help="File that holds the key password.")]
SslCheckHostname = Annotated[bool, typer.Option(help="Verify that the broker's certificate matches its host name.")]
Protected = Annotated[
    bool | None,
    typer.Option(
        "--protected/--no-protected",
        help="Require typing the context's name before changes (default: no; with --replace: as before).",
        show_default=False,
    ),
]
Use = Annotated[
    bool, typer.Option("--use", help="Make it the current context; the first context always becomes current.")
]
Replace = Annotated[bool, typer.Option("--replace", help="Overwrite an existing context that differs.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be written, without writing it.")]
