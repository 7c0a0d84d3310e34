"""GET requests to a schema registry, bounded in time and size.

One deadline covers all URLs, from name resolution to the last byte of the response. A server that sends a byte now and
then gets no more time than a silent one. Redirects are not followed, because they could send the password elsewhere.
For the same reason, credentials never go through a proxy in plaintext.
"""

from __future__ import annotations

import base64
import io
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPConnection, HTTPException, RemoteDisconnected
from typing import Any, NamedTuple, cast
from urllib.parse import SplitResult, unquote, urlsplit

from kctl.base.deadline import Deadline
from kctl.base.parallel import run_all
from kctl.errors import (
    CertificateRejected,
    ConnectionFailed,
    ConnectionReason,
    ConnectionTimedOut,
    KctlError,
    Reason,
    Refused,
    UsageError,
)
from kctl.protocol.socket_errors import error_class

MAX_ANSWER_BYTES = 4 << 20
_PORTS = {"http": 80, "https": 443}
_SERVER_ERRORS = range(500, 600)
_WANTS_CERTIFICATE = ("CERTIFICATE_REQUIRED", "HANDSHAKE_FAILURE", "BAD_CERTIFICATE", "UNKNOWN_CA")


@dataclass(frozen=True, slots=True)
class RegistryAccess:
    """The login to a registry. user_info: "user:password"; token: a bearer token instead. Files are PEM."""

    user_info: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    key_password: str | None = field(default=None, repr=False)
    check_hostname: bool = True


NO_LOGIN = RegistryAccess()


class HttpAnswer(NamedTuple):
    """A response. url: the registry that sent it. too_large: data is truncated. artifact_type: from Apicurio."""

    url: str
    status: int
    data: bytes
    too_large: bool
    artifact_type: str | None


class RegistryHttp:
    """One registry at one URL or several (`http://a:8081,http://b:8081`), tried in order until one responds."""

    def __init__(self, urls: str, access: RegistryAccess, timeout_s: float) -> None:
        """Raise UsageError for an invalid registry URL, and for unusable files."""
        self.urls = check_urls(urls)
        self._access, self._timeout_s = access, timeout_s
        self._headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json", **_login(access)}
        self._context = _tls_context(access) if any(url.startswith("https") for url in self.urls) else None

    @property
    def url(self) -> str:
        """Return the first URL, for messages."""
        return self.urls[0]

    def get(self, path: str, deadline: Deadline, rebase: Callable[[str], str] = str) -> HttpAnswer:
        """Return the response of the first registry that responds.

        rebase: maps a registry URL to another API on the same host. Raises subclasses of ConnectionFailed, and Refused.
        """
        failure: KctlError | None = None
        for index, url in enumerate(self.urls):
            last = index == len(self.urls) - 1
            try:
                # An unresponsive registry must leave time for the others.
                answer = self._ask(rebase(url), path, deadline if last else deadline.at_most(deadline.left_s / 2))
            except ConnectionFailed as exc:
                failure = failure or exc
                continue
            if answer.status not in _SERVER_ERRORS or last:
                self.urls = (url, *self.urls[:index], *self.urls[index + 1 :])
                return answer
        assert failure is not None
        raise failure

    def _ask(self, url: str, path: str, deadline: Deadline) -> HttpAnswer:
        try:
            return self._exchange(url, path, deadline)
        except TimeoutError:
            raise ConnectionTimedOut(
                f"the schema registry {url} did not respond within {self._timeout_s:g} s",
                hint="raise --timeout to wait longer",
            ) from None
        except ssl.SSLError as exc:
            raise _tls_error(exc, url, self._access) from None
        except (ConnectionResetError, RemoteDisconnected, BrokenPipeError):
            raise _closed(url, self._access) from None
        except (OSError, HTTPException, ValueError) as exc:
            raise error_class(exc)(
                f"the schema registry {url} cannot be reached: {_reason(exc)}",
                hint="check --schema-registry and the network connection from this machine",
            ) from None

    def _exchange(self, url: str, path: str, deadline: Deadline) -> HttpAnswer:
        parts = urlsplit(url)
        host, port = str(parts.hostname), parts.port or _PORTS[parts.scheme]
        proxy = _proxy(parts)
        if proxy is not None and parts.scheme == "http" and "Authorization" in self._headers:
            raise Refused(
                f"the login for {url} would go to the proxy {proxy.hostname} in plaintext",
                hint=f"use https, or exclude the registry from the proxy: no_proxy={host}",
                reason=Reason.UNSAFE,
            )
        with _connect(proxy or parts, deadline) as sock:
            if parts.scheme == "http":
                target, headers = (path, {}) if proxy is None else (url + path, _proxy_login(proxy))
                base = "" if proxy is not None else parts.path
                return _get(sock, host, port, base + target, self._headers | headers, deadline, url)
            if proxy is not None:
                _open_tunnel(sock, host, port, proxy, deadline)
            assert self._context is not None
            sock.settimeout(_remaining_s(deadline))
            with self._context.wrap_socket(sock, server_hostname=host) as tls:
                return _get(tls, host, port, parts.path + path, self._headers, deadline, url)


class _TimedReader(io.RawIOBase):
    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        self._sock, self._deadline = sock, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._sock.settimeout(_remaining_s(self._deadline))
        return self._sock.recv_into(buffer)


class _TimedSocket:
    """A socket for http.client. Every read and write ends at the deadline. The owner closes the real socket."""

    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        self._sock, self._deadline = sock, deadline

    def sendall(self, data: bytes) -> None:
        self._sock.settimeout(_remaining_s(self._deadline))
        self._sock.sendall(data)

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(_TimedReader(self._sock, self._deadline))

    def close(self) -> None:
        pass


def _remaining_s(deadline: Deadline) -> float:
    if deadline.expired:
        raise TimeoutError
    return deadline.left_s


def _connect(parts: SplitResult, deadline: Deadline) -> socket.socket:
    """Return a TCP connection to the first address of the host that accepts one. Raises OSError."""
    port = parts.port or _PORTS[parts.scheme]
    addresses = _resolve(str(parts.hostname), port, deadline)
    failure: OSError | None = None
    for index, (family, kind, protocol, _, address) in enumerate(addresses):
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(max(0.001, _remaining_s(deadline) / (len(addresses) - index)))
            sock.connect(address)
        except OSError as exc:
            sock.close()
            failure = failure or exc
        else:
            return sock
    raise failure or OSError("the host name has no address")


def _resolve(host: str, port: int, deadline: Deadline) -> list[Any]:
    """Return the addresses of a host. The resolver has its own timeouts, so it runs in a thread. Raises OSError."""
    look_up = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    try:
        answers = run_all({host: look_up}, deadline)
    except UnicodeError as exc:
        raise OSError(_reason(exc)) from None
    if host not in answers:
        raise TimeoutError
    return cast("list[Any]", answers[host])


def _get(
    sock: socket.socket, host: str, port: int, target: str, headers: dict[str, str], deadline: Deadline, url: str
) -> HttpAnswer:
    connection = HTTPConnection(host, port)
    connection.sock = _TimedSocket(sock, deadline)
    connection.request("GET", target, headers=headers | {"Connection": "close"})
    response = connection.getresponse()
    data = response.read(MAX_ANSWER_BYTES + 1)
    too_large = len(data) > MAX_ANSWER_BYTES
    return HttpAnswer(url, response.status, data, too_large, response.getheader("X-Registry-ArtifactType"))


def _proxy(parts: SplitResult) -> SplitResult | None:
    """Return the proxy from the environment for a URL (http_proxy, https_proxy, no_proxy)."""
    from urllib.request import getproxies, proxy_bypass

    host = str(parts.hostname)
    proxies = getproxies()
    text = proxies.get(parts.scheme) or proxies.get("all")
    if not text or proxy_bypass(host) or proxy_bypass(f"{host}:{parts.port or _PORTS[parts.scheme]}"):
        return None
    proxy = urlsplit(text if "://" in text else f"http://{text}")
    if proxy.scheme != "http" or not proxy.hostname:
        raise Refused(
            f"the proxy for {parts.scheme}:// is not an http:// URL", hint=f"set an http:// proxy, or no_proxy={host}"
        )
    return proxy


def _proxy_login(proxy: SplitResult) -> dict[str, str]:
    if proxy.username is None:
        return {}
    login = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": f"Basic {base64.b64encode(login.encode()).decode()}"}


def _open_tunnel(sock: socket.socket, host: str, port: int, proxy: SplitResult, deadline: Deadline) -> None:
    connection = HTTPConnection(host, port)
    connection.sock = _TimedSocket(sock, deadline)
    name = f"[{host}]" if ":" in host else host
    connection.request("CONNECT", f"{name}:{port}", headers=_proxy_login(proxy))
    status = connection.getresponse().status
    if status != 200:
        raise OSError(f"the proxy {proxy.hostname} returned HTTP {status}")


def _login(access: RegistryAccess) -> dict[str, str]:
    if access.user_info is not None and access.token is not None:
        raise UsageError("the schema registry has two logins: a user and a token", hint="remove one of them")
    if access.token is not None:
        if not access.token.isascii() or not access.token.isprintable() or " " in access.token:
            raise UsageError("the schema registry's token has characters that are not allowed in a token")
        return {"Authorization": f"Bearer {access.token}"}
    if access.user_info is None:
        return {}
    return {"Authorization": f"Basic {base64.b64encode(access.user_info.encode()).decode()}"}


def _tls_context(access: RegistryAccess) -> ssl.SSLContext:
    from kctl.protocol.security import Security
    from kctl.protocol.tls import make_context

    security = Security(
        protocol="SSL", ssl_cafile=access.ca, ssl_certfile=access.cert, ssl_keyfile=access.key,
        ssl_key_password=access.key_password, ssl_check_hostname=access.check_hostname,
    )  # fmt: skip
    try:
        return make_context(security)
    except UsageError as exc:
        raise UsageError(f"schema registry: {exc.message}", hint=exc.hint) from None


def _tls_error(exc: ssl.SSLError, url: str, access: RegistryAccess) -> ConnectionFailed:
    if isinstance(exc, ssl.SSLCertVerificationError):
        return CertificateRejected(
            f"the schema registry {url} is not trusted: {exc.verify_message}",
            hint="set --schema-registry-ca FILE (or SSL_CERT_FILE) to the CA that signed its certificate",
            reason=ConnectionReason.CERTIFICATE_UNTRUSTED,
        )
    reason = exc.reason or ""
    if any(name in reason for name in _WANTS_CERTIFICATE):
        what = "does not accept the client certificate" if access.cert else "wants a client certificate"
        return CertificateRejected(
            f"the schema registry {url} {what}",
            hint="set --schema-registry-cert FILE and --schema-registry-key FILE",
            reason=ConnectionReason.CLIENT_CERTIFICATE_REJECTED
            if access.cert
            else ConnectionReason.CLIENT_CERTIFICATE_REQUIRED,
        )
    if isinstance(exc, (ssl.SSLEOFError, ssl.SSLZeroReturnError)) or "EOF" in reason:
        return _closed(url, access)
    return ConnectionFailed(
        f"the schema registry {url}: the TLS handshake failed ({reason.lower().replace('_', ' ')})",
        hint="is it an http:// URL?",
        reason=ConnectionReason.TLS_HANDSHAKE,
    )


def _closed(url: str, access: RegistryAccess) -> ConnectionFailed:
    """Return the error. A server that wants a certificate may close the connection before its alert is read."""
    hint = "check the log of the registry"
    if url.startswith("https") and not access.cert:
        hint = "if it wants a client certificate: --schema-registry-cert FILE and --schema-registry-key FILE"
    return ConnectionFailed(
        f"the schema registry {url} closed the connection", hint=hint, reason=ConnectionReason.CONNECTION_CLOSED
    )


def _reason(exc: Exception) -> str:
    text = exc.strerror if isinstance(exc, OSError) and exc.strerror else str(exc)
    return text or type(exc).__name__


def check_urls(text: str) -> tuple[str, ...]:
    """Return the URLs of a comma-separated list, as in schema.registry.url. Raises UsageError."""
    urls = [url.strip() for url in text.split(",") if url.strip()]
    return tuple(dict.fromkeys(map(_checked, urls or [""])))


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        port_is_valid = parts.port is None or parts.port > 0
    except ValueError:
        parts, port_is_valid = urlsplit(""), False
    if parts.scheme not in _PORTS or not parts.hostname or not port_is_valid or parts.query or parts.fragment:
        raise UsageError(
            "the schema registry is not an http:// or https:// URL", hint="for example http://localhost:8081"
        )
    if parts.username is not None or parts.password is not None:
        raise UsageError(
            "the schema registry's URL contains a user or password, which others can see",
            hint="set KCTL_SCHEMA_REGISTRY_USER_INFO to user:password, or use --schema-registry-user-info-file FILE",
        )
    if any(ord(char) <= 32 or ord(char) == 127 for char in url):
        raise UsageError("the schema registry's URL contains a space or a control character")
    return url.rstrip("/")
