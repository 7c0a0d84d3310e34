"""Secrets: read from the environment or from a file when they are needed, and hidden in all output."""

from __future__ import annotations

import codecs
import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kctl.errors import UsageError

if TYPE_CHECKING:
    from kctl.base.escapes import Unescaped

MAX_SECRET_BYTES = 64 * 1024
Warn = Callable[[str], None]
_PIPE_S = 10.0  # to wait for the writer of a pipe
_SHORTEST_CODED = 8  # characters of base64
_SHORTEST_LINE = 60  # characters of base64; shorter ones are not broken into lines
_SHORTEST_CUT = 12  # characters; a shorter match at the end of a text may be a coincidence
_URL_SAFE = str.maketrans("+/", "-_")
_LAYERS = 8  # of escapes within escapes
_MAY_BE_ESCAPED = re.compile(r"[%&\\+]|''|'\"")
_ESCAPE = re.compile("%[0-9A-F]{2}")
_ENDS = frozenset("'\"…")  # characters that may follow truncated text


def ignore(_text: str) -> None:
    """Drop a warning, for callers without a place to show it."""


def read_secret(what: str, env: str | None, file: str | None, *, warn: Warn = ignore) -> str | None:
    """Return the secret in the variable `env` or in `file`; None if neither is set.

    file: a path (also of a pipe, such as `<(...)`), or - for stdin. A byte order mark at the beginning and one newline
    (LF or CRLF) at the end are not part of the secret; everything else is. what: the setting's name, for messages.
    warn: receives a line if other users can read the file. Raises UsageError if the secret is missing, empty, too
    large or not UTF-8, and if the file is world-writable.
    """
    if env is not None:
        value = os.environ.get(env)
        if not value:
            raise UsageError(f"the environment variable {env} for {what} is not set", hint=f"export {env}=...")
        if not _is_utf8(value):
            raise UsageError(f"the environment variable {env} for {what} is not UTF-8 text")
        return value
    if file is None:
        return None
    if file == "-":
        return _secret_of(sys.stdin.buffer.read(MAX_SECRET_BYTES + 1), f"{what} on stdin")
    path = Path(file).expanduser()
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a FIFO without a writer must not hang
        try:
            status = os.fstat(fd)
            _check_kind(path, what, status)
            _check_mode(path, what, status, warn)
            data = _all_of(fd, f"{path} for {what}")
        finally:
            os.close(fd)
    except OSError as exc:
        raise _unreadable(path, what, exc) from None
    return _secret_of(data, f"{path} for {what}")


def check_secret_file(path: Path, what: str, *, warn: Warn = ignore) -> None:
    """Check a file that holds a secret among other things, as `read_secret` does. Raises UsageError."""
    try:
        status = path.stat()
    except OSError as exc:
        raise _unreadable(path, what, exc) from None
    _check_kind(path, what, status)
    _check_mode(path, what, status, warn)


def _check_kind(path: Path, what: str, status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise UsageError(f"{path} for {what} is a folder", hint="name the file in it that has the secret")
    if not stat.S_ISREG(status.st_mode) and not stat.S_ISFIFO(status.st_mode):
        raise UsageError(f"{path} for {what} is not a file")


def _check_mode(path: Path, what: str, status: os.stat_result, warn: Warn) -> None:
    """Reject a world-writable file, and only warn if other users can read it.

    Mounted secrets (Kubernetes, Docker) are 0440 or 0444 and belong to root: their users cannot change the mode.
    """
    if not stat.S_ISREG(status.st_mode):
        return
    mode = f"mode {stat.S_IMODE(status.st_mode):04o}"
    if status.st_mode & stat.S_IWOTH:
        raise UsageError(f"{path} for {what} is world-writable ({mode})", hint=f"chmod 600 {path}")
    if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        warn(f"other users can read {path} for {what} ({mode}); if it is yours to change: chmod 600 {path}")


def _all_of(fd: int, name: str) -> bytes:
    """Read a file or a pipe, at most one byte more than MAX_SECRET_BYTES. Raises UsageError, OSError."""
    import select
    import time

    ends = time.monotonic() + _PIPE_S
    data = b""
    while len(data) <= MAX_SECRET_BYTES:
        try:
            piece = os.read(fd, MAX_SECRET_BYTES + 1 - len(data))
        except BlockingIOError:
            piece = None
        if piece:
            data += piece
            continue
        # A pipe reads as empty until its writer has opened it.
        if piece is not None and (data or stat.S_ISREG(os.fstat(fd).st_mode)):
            break
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        left_s = ends - time.monotonic()
        events = poll.poll(left_s * 1000) if left_s > 0 else []
        if not events:
            raise UsageError(f"{name} is a pipe, and its writer did not finish within {_PIPE_S:g} s")
        if not events[0][1] & select.POLLIN:  # the writer has closed it
            break
    return data


def _secret_of(data: bytes, name: str) -> str:
    """Decode bytes as the text of a secret. Raises UsageError."""
    if len(data) > MAX_SECRET_BYTES:
        raise UsageError(f"{name} is larger than {MAX_SECRET_BYTES // 1024} KiB", hint="is it the right file?")
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise UsageError(f"{name} is UTF-16 text", hint="save it as UTF-8")
    data = data.removeprefix(codecs.BOM_UTF8)
    if b"\0" in data:
        raise UsageError(f"{name} has NUL bytes", hint="if it is UTF-16 text, save it as UTF-8")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"{name} is not UTF-8 text", hint="save it as UTF-8") from None
    secret = text.removesuffix("\n").removesuffix("\r") if text.endswith("\r\n") else text.removesuffix("\n")
    if not secret:
        raise UsageError(f"{name} is empty")
    return secret


def _unreadable(path: Path, what: str, exc: OSError) -> UsageError:
    return UsageError(f"cannot read {path} for {what}: {exc.strerror}", hint="check the path and its permissions")


def _is_utf8(text: str) -> bool:
    """Return True if a variable is UTF-8. Other bytes in the environment become lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def write_secret(path: Path, secret: str, what: str) -> None:
    """Write a secret to a file that only its owner can read, replacing the file; read_secret returns the same text.

    Raises OSError, and UsageError for text that does not fit on one line.
    """
    from kctl.base.output_file import write_output

    if not secret or "\n" in secret or "\r" in secret or len(secret.encode()) >= MAX_SECRET_BYTES:
        raise UsageError(f"{what} is empty, too long or has more than one line", hint="use an environment variable")
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.unlink(missing_ok=True)  # whatever its mode is, and even if a process has it open
    write_output(path, f"{secret}\n".encode(), mode=0o600)


class Redactor:
    """A filter that hides secrets in texts and values, including their forms in JSON, base64 and URLs."""

    SHORTEST = 4  # hiding a shorter secret would also hide unrelated words
    HIDDEN = "***"

    def __init__(self, secrets: Iterable[object]) -> None:
        """secrets: texts, numbers, or lists and mappings of them."""
        texts = {text for secret in secrets for text in _texts_of(secret)}
        self._forms = _longest_first(form for text in texts for form in _forms(text) if len(form) >= self.SHORTEST)
        coded = (form for text in texts for form in _base64_of(text))
        self._broken = _longest_first(form for form in coded if len(form) >= _SHORTEST_LINE)
        plain = (form for text in texts for form in (text, *_base64_of(text)))
        self._plain = _longest_first(form for form in plain if len(form) >= self.SHORTEST)
        # All kinds at once; each kind alone if a secret contains text that looks like an escape of another kind.
        self._kinds = ["all"] + ["form"] * any(" " in text for text in texts)
        if any(char in text for char in "%&\\'" for text in texts):
            self._kinds += ["percent", "reference", "backslash"]

    def text(self, text: str) -> str:
        """Return the text with *** for each secret, also for a truncated one: "'hunter2-and-mo' is not a number"."""
        for form in self._forms:
            if len(form) > _SHORTEST_CUT:
                text = self._without_beginning(text, form)
        return self._whole(text)

    def _whole(self, text: str) -> str:
        for form in self._forms:
            text = text.replace(form, self.HIDDEN)
        text = self._without_escaped(text)
        return self._across_lines(text) if self._broken else text

    def _without_escaped(self, text: str) -> str:
        """Hide secrets in escaped form, also with nested escapes such as a URL in JSON in HTML."""
        if not self._plain or not _MAY_BE_ESCAPED.search(text):
            return text
        from kctl.base.escapes import unescape

        hidden = set()
        for kind in self._kinds:
            layers: list[Unescaped] = []
            while len(layers) < _LAYERS:
                layer = unescape(layers[-1].text if layers else text, kind)
                if layer is None:
                    break
                layers.append(layer)
                hidden |= {_origin(span, layers) for span in _places(layer.text, self._plain)}
        for start, end in reversed(_merged(hidden)):
            text = text[:start] + self.HIDDEN + text[end:]
        return text

    def _across_lines(self, text: str) -> str:
        """Hide base64 that is broken into lines, as `base64` and MIME do, also if the lines are joined by spaces."""
        places = [place for place, char in enumerate(text) if char not in " \t\r\n"]
        if len(places) in {0, len(text)}:
            return text
        joined = "".join(text[place] for place in places)
        for form in self._broken:
            joined = joined.replace(form, "\0" * len(form))
        for match in reversed(list(re.finditer("\0+", joined))):
            text = text[: places[match.start()]] + self.HIDDEN + text[places[match.end() - 1] + 1 :]
        return text

    def _without_beginning(self, text: str, form: str) -> str:
        """Hide the beginning of a secret at the end of the text, or at the end of a quotation in it."""
        head, parts, done = form[:_SHORTEST_CUT], [], 0
        at = text.find(head)
        while at >= 0:
            end = at + _alike(text[at : at + len(form)], form)
            if end == len(text) or text[end] in _ENDS:
                parts += [text[done:at], self.HIDDEN]
                done = end
            at = text.find(head, max(done, at + 1, end - len(head)))  # do not compare the same characters twice
        return "".join([*parts, text[done:]])

    def value(self, value: Any) -> Any:
        """Return a JSON value with *** for each secret, also in keys. A number that is a secret becomes text."""
        if isinstance(value, str):
            return self._whole(value)
        if isinstance(value, Mapping):
            return {self.value(key): self.value(each) for key, each in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.value(each) for each in value]
        if isinstance(value, (int, float)) and not isinstance(value, bool) and str(value) in self._forms:
            return self.HIDDEN
        return value


def _places(text: str, forms: Iterable[str]) -> Iterator[tuple[int, int]]:
    for form in forms:
        at = text.find(form)
        while at >= 0:
            yield at, at + len(form)
            at = text.find(form, at + len(form))


def _origin(span: tuple[int, int], layers: Sequence[Unescaped]) -> tuple[int, int]:
    """Return the range in the original text of a part of the last layer."""
    for layer in reversed(layers):
        span = layer.span(*span)
    return span


def _merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _texts_of(secret: object) -> Iterator[str]:
    if isinstance(secret, Mapping):
        for each in secret.values():
            yield from _texts_of(each)
    elif isinstance(secret, (list, tuple)):
        for each in secret:
            yield from _texts_of(each)
    elif secret is not None and not isinstance(secret, bool):
        yield str(secret)
        if "\n" in str(secret):  # e.g. a key, whose lines may be shown one by one
            yield from (line for line in str(secret).splitlines() if line.strip())


def _within_base64(data: bytes) -> Iterator[str]:
    """Yield the base64 characters that a text contributes inside a longer text, such as user:secret."""
    import base64

    for before in range(3):
        coded = base64.b64encode(b"\0" * before + data).decode().rstrip("=")
        first = (before * 8 + 5) // 6  # the first character that encodes only bits of the secret
        last = (before + len(data)) * 8 // 6
        if last - first >= _SHORTEST_CODED:
            yield coded[first:last]


def _forms(text: str) -> Iterator[str]:
    """Yield the encoded forms of a text."""
    import json
    from html import escape
    from urllib.parse import quote, quote_plus

    data = text.encode("utf-8", "surrogatepass")
    yield text
    for ascii_only in (True, False):
        once = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
        yield from (once, json.dumps(once, ensure_ascii=ascii_only)[1:-1])  # also JSON inside a JSON string
    yield repr(text)[1:-1]
    yield ascii(text)[1:-1]
    yield repr(data)[2:-1]
    yield from _base64_of(text)
    for coded in (quote(data, safe=""), quote(data), quote_plus(data), escape(text), escape(text, quote=False)):
        yield from (coded, _ESCAPE.sub(lambda match: match.group().lower(), coded))


def _base64_of(text: str) -> Iterator[str]:
    import base64

    data = text.encode("utf-8", "surrogatepass")
    for coded in (base64.b64encode(data).decode(), *_within_base64(data)):
        yield from (coded, coded.translate(_URL_SAFE))


def _alike(text: str, other: str) -> int:
    """Return the length of the common prefix."""
    return next(
        (at for at, (one, two) in enumerate(zip(text, other, strict=False)) if one != two), min(len(text), len(other))
    )


def _longest_first(forms: Iterable[str]) -> list[str]:
    return sorted(set(forms), key=len, reverse=True)
