"""The security settings for connections to one cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl

    from kctl.protocol.security import Security


class Dialer:
    """The security settings for connections to one cluster, with a shared TLS context.

    controllers: the servers are KRaft controllers, which lack Metadata; without it, a controller is an error.

    Raises UsageError if the password or a file in these settings is unusable.
    """

    def __init__(self, security: Security, *, controllers: bool = False) -> None:
        self.security = security
        self.controllers = controllers
        if security.sasl:  # report an unreadable password once, not once per server
            _ = security.sasl_password
        self.ssl_context: ssl.SSLContext | None = None
        if security.tls:
            from kctl.protocol.tls import make_context

            self.ssl_context = make_context(security)
