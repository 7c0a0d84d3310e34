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
    str | None, typer.Option(metavar="FILE", help="File with the password; one newline at the end is ignored.")
]
SslCafile = Annotated[str | None, typer.Option(metavar="FILE", help="PEM with the CAs to trust; the system's without.")]
SslCertfile = Annotated[str | None, typer.Option(metavar="FILE", help="PEM with the client certificate.")]
SslKeyfile = Annotated[
    str | None, typer.Option(metavar="FILE", help="PEM with its key, when it is not in the same file.")
]
SslKeyPasswordEnv = Annotated[
    str | None, typer.Option(metavar="VARIABLE", help="Environment variable that holds the key's password.")
]
SslKeyPasswordFile = Annotated[str | None, typer.Option(metavar="FILE", help="File that holds the key's password.")]
SslCheckHostname = Annotated[bool, typer.Option(help="Whether the broker's certificate must name the host.")]
Protected = Annotated[
    bool | None,
    typer.Option(
        "--protected/--no-protected",
        help="Ask for the context's name before a change of this cluster; with --replace as before.",
        show_default=False,
    ),
]
Use = Annotated[bool, typer.Option("--use", help="Make it the current context; the first one becomes it anyway.")]
Replace = Annotated[bool, typer.Option("--replace", help="Overwrite a context with other settings.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be written, and write nothing.")]
