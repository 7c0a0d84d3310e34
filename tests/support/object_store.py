"""A small S3 server over a local folder, with the requests of kctl's readers: listings, HEAD, and ranges of objects.

The client is real (pyarrow's, from the AWS SDK). The server is not, because no test package has one. The first part of
a path is the bucket. Requests are not authenticated; they are recorded.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

_DATE = "Thu, 01 Jan 2026 00:00:00 GMT"


@dataclass
class ObjectStore:
    """A running server. address: host:port. objects: the keys that were read, in order."""

    address: str
    objects: list[str] = field(default_factory=list)


@contextmanager
def object_store(folder: Path) -> Iterator[ObjectStore]:
    """Serve the folders of a folder as buckets."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_HEAD(self) -> None:
            self._answer(body=False)

        def do_GET(self) -> None:
            found = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(found.query).items()}
            if "list-type" in query:
                self._send(200, _listing(folder / unquote(found.path).strip("/"), query.get("prefix", "")))
            else:
                self._answer(body=True)

        def _answer(self, *, body: bool) -> None:
            path = folder / unquote(urlsplit(self.path).path).strip("/")
            if not path.is_file():
                self._send(404, b"<Error><Code>NoSuchKey</Code></Error>" if body else b"")
                return
            data = path.read_bytes()
            if not body:
                self._send(200, b"", length=len(data))
                return
            served.objects.append(str(path.relative_to(folder)))
            match = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
            if match is None:
                self._send(200, data)
                return
            first, last = int(match[1]), min(int(match[2]), len(data) - 1)
            self._send(206, data[first : last + 1], range_=f"bytes {first}-{last}/{len(data)}")

        def _send(self, code: int, data: bytes, *, length: int | None = None, range_: str | None = None) -> None:
            self.send_response(code)
            self.send_header("Content-Length", str(len(data) if length is None else length))
            self.send_header("Last-Modified", _DATE)
            self.send_header("ETag", '"0"')
            if range_ is not None:
                self.send_header("Content-Range", range_)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served = ObjectStore(f"127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _listing(bucket: Path, prefix: str) -> bytes:
    """Return ListObjectsV2 of a folder, with the delimiter `/`."""
    folder = bucket / prefix
    rows = []
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        key = escape(f"{prefix}{path.name}")
        if path.is_dir():
            rows.append(f"<CommonPrefixes><Prefix>{key}/</Prefix></CommonPrefixes>")
        else:
            size = path.stat().st_size
            rows.append(
                f"<Contents><Key>{key}</Key><Size>{size}</Size><ETag>0</ETag>"
                "<LastModified>2026-01-01T00:00:00Z</LastModified></Contents>"
            )
    text = f"<ListBucketResult><IsTruncated>false</IsTruncated>{''.join(rows)}</ListBucketResult>"
    return f'<?xml version="1.0" encoding="UTF-8"?>{text}'.encode()
