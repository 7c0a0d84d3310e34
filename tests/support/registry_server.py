"""A schema registry with a few responses over HTTP or HTTPS, and one that misbehaves; Kafka includes none."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


class RegistryServer:
    """A registry. answers: responses by path: a JSON value, bytes, or a status. requests: received (path, headers).

    drip_s: seconds between two bytes of a response. headers: of each response.
    """

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.headers: dict[str, str] = {}
        self.drip_s = 0.0
        self.url = ""

    @property
    def paths(self) -> list[str]:
        return [path for path, _ in self.requests]


@contextmanager
def serve(context: ssl.SSLContext | None = None) -> Iterator[RegistryServer]:
    """Yield a running registry. context: for HTTPS."""
    registry = RegistryServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            registry.requests.append((self.path, dict(self.headers)))
            answer = registry.answers.get(self.path, 404)
            status, value = (answer, {"error_code": 40403}) if isinstance(answer, int) else (200, answer)
            body = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.send_response(status)
            for name, text in registry.headers.items():
                self.send_header(name, text)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if not registry.drip_s:
                self.wfile.write(body)
                return
            try:
                for byte in body:
                    self.wfile.write(bytes([byte]))
                    self.wfile.flush()
                    time.sleep(registry.drip_s)
            except OSError:
                pass  # the client closed the connection

        def do_CONNECT(self) -> None:
            registry.requests.append((self.path, dict(self.headers)))
            self.send_error(502)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    registry.url = f"{'https' if context else 'http'}://127.0.0.1:{server.server_address[1]}"
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[RegistryServer]:
    """Yield a registry without responses, and disable proxies."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    with serve() as server:
        yield server
