"""HTTP downloads that resume after an interruption.

Beside the partial file lies a small record of the complete file: its size, and the server's validator (ETag or
Last-Modified). A resumed request carries `Range` and `If-Range` (RFC 9110, sections 13.1.5 and 14.2), so a server
whose file has changed returns the whole new file. Only sizes are checked here; the caller verifies the checksum.
"""

from __future__ import annotations

import http.client
import json
import queue
import re
import ssl
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from kctl import __version__
from kctl.deploy.runtime.archive import Advance
from kctl.errors import ConnectionFailed, ConnectionReason, KctlError, NotFound, OperationFailed, TimedOut
from kctl.protocol.socket_errors import error_class

ANSWER_TIMEOUT_S = 5.0  # for the connection, the headers, and between two pieces of the body
_ATTEMPTS_WITHOUT_PROGRESS = 3
_CHUNK = 256 * 1024
_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _PartRecord:
    """The file that a part belongs to. validator: a strong ETag or a Last-Modified date; empty without both."""

    total_bytes: int | None
    validator: str


def within(seconds: float, call: Callable[[], T], *, subject: str) -> T:
    """Return `call()`, run in a thread for up to `seconds`, because resolving a name has no timeout of its own.

    Raises ConnectionFailed if it takes longer, and the errors of `call`.
    """
    return _collect(_start(call), time.monotonic() + seconds, seconds, subject)


def within_all(seconds: float, calls: Iterable[tuple[str, Callable[[], T]]]) -> list[T | KctlError]:
    """Run all (subject, call) at the same time, each for up to `seconds`; KctlErrors are returned as values."""
    started = [(subject, _start(call)) for subject, call in calls]
    deadline = time.monotonic() + seconds

    def outcome(subject: str, answers: _Answers[T]) -> T | KctlError:
        try:
            return _collect(answers, deadline, seconds, subject)
        except KctlError as exc:
            return exc

    return [outcome(subject, answers) for subject, answers in started]


class _Answers(queue.SimpleQueue[Callable[[], T]]):
    """The result of a thread: one call that returns it or raises the thread's exception."""


def _start(call: Callable[[], T]) -> _Answers[T]:
    answers: _Answers[T] = _Answers()

    def run() -> None:
        try:
            value = call()
        except BaseException as exc:  # noqa: BLE001 - raised again in the caller's thread
            caught = exc

            def fail() -> T:
                raise caught

            answers.put(fail)
        else:
            answers.put(lambda: value)

    # A daemon thread: one that hangs in the resolver must not keep the process from exiting.
    threading.Thread(target=run, daemon=True).start()
    return answers


def _collect(answers: _Answers[T], deadline: float, seconds: float, subject: str) -> T:
    try:
        answer = answers.get(timeout=max(0.0, deadline - time.monotonic()))
    except queue.Empty:
        raise ConnectionFailed(
            f"{subject} did not respond within {seconds:g} s", reason=ConnectionReason.NO_RESPONSE
        ) from None
    return answer()


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects, except from https to http or to other protocols."""

    def redirect_request(self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: str) -> Any:
        new = urllib.parse.urlsplit(newurl).scheme
        if new not in {"http", "https"} or (req.type == "https" and new != "https"):
            raise urllib.error.HTTPError(newurl, code, "an unsafe redirect", headers, fp)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener() -> urllib.request.OpenerDirector:
    """Return an opener for HTTP and HTTPS only (urlopen also reads file: and ftp:)."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(), urllib.request.HTTPHandler(), urllib.request.HTTPSHandler(),
        urllib.request.HTTPErrorProcessor(), urllib.request.HTTPDefaultErrorHandler(), _SafeRedirects(),
        urllib.request.UnknownHandler(),
    ):  # fmt: skip
        opener.add_handler(handler)
    return opener


def _open(url: str, headers: dict[str, str]) -> http.client.HTTPResponse:
    """Return the response to a GET after its headers. Raises NotFound (404, 410) and ConnectionFailed."""
    if urllib.parse.urlsplit(url).scheme not in {"http", "https"}:
        raise ConnectionFailed(f"{url} is not an HTTP address")
    fixed = {"User-Agent": f"kctl/{__version__}", "Accept-Encoding": "identity"}
    request = urllib.request.Request(url, headers={**fixed, **headers})  # noqa: S310 - the scheme is checked above
    opener = _opener()
    try:
        response = within(
            ANSWER_TIMEOUT_S, lambda: opener.open(request, timeout=ANSWER_TIMEOUT_S), subject=host_of(url)
        )
    except urllib.error.HTTPError as exc:
        with exc:
            if exc.code in {404, 410}:
                raise NotFound(f"{host_of(url)} has no {url.rpartition('/')[2]}") from exc
            if exc.code == 416:
                raise _RangeRefused from exc
            raise ConnectionFailed(f"{host_of(url)} responded {exc.code} {exc.reason}") from exc
    except (OSError, http.client.HTTPException) as exc:
        raise _connection_failed(url, exc) from exc
    assert isinstance(response, http.client.HTTPResponse)
    return response


class _RangeRefused(Exception):
    """HTTP 416: the part is longer than the file."""


def host_of(url: str) -> str:
    """Return host and port of an address for messages, without user name and password."""
    parts = urllib.parse.urlsplit(url)
    return (parts.hostname or url) + (f":{parts.port}" if parts.port else "")


def _connection_failed(url: str, exc: Exception) -> ConnectionFailed:
    reason = exc.reason if isinstance(exc, urllib.error.URLError) else exc
    if isinstance(reason, TimeoutError):
        return ConnectionFailed(
            f"{host_of(url)} did not respond within {ANSWER_TIMEOUT_S:g} s", reason=ConnectionReason.NO_RESPONSE
        )
    text = reason.strerror if isinstance(reason, OSError) and reason.strerror else str(reason)
    untrusted = isinstance(reason, ssl.SSLCertVerificationError)
    return error_class(reason if isinstance(reason, Exception) else exc)(
        f"{host_of(url)}: {text or type(reason).__name__}",
        reason=ConnectionReason.CERTIFICATE_UNTRUSTED if untrusted else None,
    )


def common_failure(failures: Sequence[KctlError], message: str, *, hint: str | None = None) -> ConnectionFailed:
    """Return one error for several servers, with their class and reason if these are the same for all."""
    failed = [each for each in failures if isinstance(each, ConnectionFailed)]
    if failed and len({(type(each), each.reason) for each in failed}) == 1:
        return failed[0].reworded(message, hint=hint)
    return ConnectionFailed(message, hint=hint)


def fetch_text(url: str, *, max_bytes: int) -> str:
    """Download a small text. Raises NotFound, ConnectionFailed."""
    with _open(url, {}) as response:
        try:
            return response.read(max_bytes).decode("utf-8", "replace")
        except (OSError, http.client.HTTPException) as exc:
            raise _connection_failed(url, exc) from exc


def download(url: str, part: Path, *, max_bytes: int, timeout_s: float, advance: Advance | None = None) -> None:
    """Download `url` into `part`, resuming an existing part. The file is complete on return.

    A broken connection is resumed as long as each attempt makes progress. Raises NotFound, ConnectionFailed (the part
    stays), TimedOut, OperationFailed if the file is larger than `max_bytes`.
    """
    deadline = time.monotonic() + timeout_s
    failed_attempts = 0
    while True:
        before = _size(part)
        try:
            if _attempt(url, part, max_bytes=max_bytes, deadline=deadline, advance=advance):
                return
            failure = ConnectionFailed(
                f"{host_of(url)} closed the connection early", reason=ConnectionReason.CONNECTION_CLOSED
            )
        except _RangeRefused:
            discard(part)
            failure = ConnectionFailed(f"{host_of(url)} does not support resuming the download")
        except NotFound:
            raise
        except ConnectionFailed as exc:
            failure = exc
        failed_attempts = 0 if _size(part) > before else failed_attempts + 1
        if failed_attempts >= _ATTEMPTS_WITHOUT_PROGRESS:
            raise failure


def discard(part: Path) -> None:
    """Delete the part and its record."""
    _record_path(part).unlink(missing_ok=True)
    part.unlink(missing_ok=True)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _record_path(part: Path) -> Path:
    return part.with_name(part.name + ".json")


def _read_record(part: Path) -> _PartRecord | None:
    try:
        body = json.loads(_record_path(part).read_text(encoding="utf-8"))
        total, validator = body["total_bytes"], body["validator"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if not isinstance(validator, str) or not (total is None or isinstance(total, int)):
        return None
    return _PartRecord(total, validator)


def _write_record(part: Path, record: _PartRecord) -> None:
    body = {"total_bytes": record.total_bytes, "validator": record.validator}
    _record_path(part).write_text(json.dumps(body), encoding="utf-8")


def _attempt(url: str, part: Path, *, max_bytes: int, deadline: float, advance: Advance | None) -> bool:
    """Send one request. Return True if the file is then complete."""
    offset, record = _size(part), _read_record(part)
    if record is None or not record.validator:
        offset = 0  # it may be a part of another file
    if record is not None and offset and offset == record.total_bytes:
        return True
    headers = {"Range": f"bytes={offset}-", "If-Range": record.validator} if offset and record else {}
    with _open(url, headers) as response:
        start, total = _body_range(response, offset, url)
        if total is not None and total > max_bytes:
            raise OperationFailed(f"{url} is larger than {max_bytes} bytes", hint="check that it is a Kafka release")
        if start == 0:
            _write_record(part, _PartRecord(total, _validator(response)))
        _receive(response, part, start=start, total=total, max_bytes=max_bytes, deadline=deadline, advance=advance)
    # Without a length, the end of the connection ends the file; the checksum then detects a truncated one.
    return total is None or _size(part) == total


def _body_range(response: http.client.HTTPResponse, offset: int, url: str) -> tuple[int, int | None]:
    """Return the body's start offset in the file and the file's size. Without range support, the offset is 0."""
    length = response.headers.get("Content-Length", "")
    if response.status == 200:
        return 0, int(length) if length.isdecimal() else None
    match = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
    if response.status != 206 or match is None or int(match.group(1)) != offset:
        raise ConnectionFailed(f"{host_of(url)} responded {response.status} with a range that was not requested")
    return offset, int(match.group(3))


def _validator(response: http.client.HTTPResponse) -> str:
    etag = response.headers.get("ETag", "")
    if etag.startswith('"'):  # a weak one (`W/"…"`) does not guarantee the same bytes
        return str(etag)
    return str(response.headers.get("Last-Modified", ""))


def _receive(
    response: http.client.HTTPResponse, part: Path, *, start: int, total: int | None, max_bytes: int,
    deadline: float, advance: Advance | None,
) -> None:  # fmt: skip
    done = start
    with part.open("r+b" if start else "wb") as out:
        out.seek(start)
        out.truncate()
        while True:
            if time.monotonic() > deadline:
                raise TimedOut(f"the download from {host_of(response.url)} did not finish in time",
                               hint="run the command again to resume, or raise --timeout")  # fmt: skip
            try:
                chunk = response.read1(_CHUNK)
            except (OSError, http.client.HTTPException) as exc:
                raise _connection_failed(response.url, exc) from exc
            if not chunk:
                return
            done += len(chunk)
            if done > max_bytes or (total is not None and done > total):
                raise OperationFailed(f"{host_of(response.url)} sent more bytes than announced")
            out.write(chunk)
            if advance:
                advance(done, total or 0)
