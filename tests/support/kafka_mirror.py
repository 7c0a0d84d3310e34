"""A local replacement for Apache's download hosts that misbehaves on demand."""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import tarfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


def kafka_archive(*jars: Path, version: str = "3.9.2", padding_bytes: int = 0) -> bytes:
    """Return an archive with Apache's layout and the jars of a real runtime. padding_bytes: added to its size."""
    out = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=out, mode="wb", compresslevel=1) as packed,
        tarfile.open(fileobj=packed, mode="w") as tar,
    ):
        for jar in jars:
            tar.add(jar, f"kafka_2.13-{version}/libs/{jar.name}")
        info = tarfile.TarInfo(f"kafka_2.13-{version}/site-docs/padding")
        info.size = padding_bytes
        tar.addfile(info, io.BytesIO(_noise(padding_bytes)))
    return out.getvalue()


def _noise(count: int) -> bytes:
    """Return incompressible bytes, the same in every run."""
    return b"".join(hashlib.sha512(n.to_bytes(4, "big")).digest() for n in range(count // 64 + 1))[:count]


@dataclass
class Mirror:
    """The files, the behavior, and the received requests.

    cut_after: bytes after which the connection closes. bytes_per_s: rate limit. ranges, validators: support Range, send
    an ETag. silent: accept connections and never respond.
    """

    files: dict[str, bytes]
    cut_after: int | None = None
    bytes_per_s: int | None = None
    ranges: bool = True
    validators: bool = True
    status: int | None = None
    redirect: str | None = None
    silent: bool = False
    requests: list[tuple[str, str | None]] = field(default_factory=list)
    sent_bytes: int = 0
    url: str = ""

    def publish(self, name: str, content: bytes, *, sha512: str | None = None) -> None:
        """Serve a file with its checksum. sha512: a wrong checksum instead."""
        self.files[name] = content
        digest = (sha512 or hashlib.sha512(content).hexdigest()).upper()
        groups = " ".join(digest[i : i + 8] for i in range(0, 128, 8))
        self.files[f"{name}.sha512"] = f"{Path(name).name}: {groups}\n".encode()

    def archive_requests(self) -> list[str | None]:
        """Return the Range headers of the requests for archives, in order."""
        return [wanted for path, wanted in self.requests if path.endswith(".tgz")]


class _Handler(BaseHTTPRequestHandler):
    mirror: Mirror
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        pass

    def do_GET(self) -> None:
        """Respond with the mirror's behavior."""
        mirror, name = self.mirror, self.path.lstrip("/")
        wanted = self.headers.get("Range")
        mirror.requests.append((self.path, wanted))
        self.close_connection = True
        if mirror.silent:
            time.sleep(30)
            return
        content = mirror.files.get(name)
        if mirror.redirect:
            self.send_response(302)
            self.send_header("Location", mirror.redirect)
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif mirror.status or content is None:
            self.send_error(mirror.status or 404)
        else:
            self._send(content, wanted)

    def _send(self, content: bytes, wanted: str | None) -> None:
        mirror = self.mirror
        etag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
        start = 0
        match = re.fullmatch(r"bytes=(\d+)-", wanted or "")
        if match and mirror.ranges and self.headers.get("If-Range", etag) == etag:
            start = int(match.group(1))
        if start >= len(content) > 0:
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        if mirror.validators:
            self.send_header("ETag", etag)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        self._body(content[start:])

    def _body(self, body: bytes) -> None:
        mirror = self.mirror
        archive = self.path.endswith(".tgz")
        end = len(body) if mirror.cut_after is None or not archive else min(len(body), mirror.cut_after)
        step = 64 * 1024
        for at in range(0, end, step):
            chunk = body[at : min(at + step, end)]
            try:
                self.wfile.write(chunk)
            except OSError:
                return
            mirror.sent_bytes += len(chunk)
            if mirror.bytes_per_s and archive:
                time.sleep(len(chunk) / mirror.bytes_per_s)


@contextmanager
def serve(mirror: Mirror) -> Iterator[Mirror]:
    """Serve on a free port of the loopback interface while the block runs."""
    handler = type("Handler", (_Handler,), {"mirror": mirror})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    mirror.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield mirror
    finally:
        server.shutdown()
        server.server_close()
