"""Headless Chromium, controlled by its own protocol over two pipes: no driver, no port, no package.

`--remote-debugging-pipe`: it reads commands from descriptor 3 and writes responses and events to descriptor 4, as JSON
messages that end in a zero byte (Chrome DevTools Protocol).
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
_TIMEOUT_S = 60.0
# Moves the pipes to the descriptors that the browser uses, and becomes the browser.
_LAUNCH = (
    "import fcntl, os, sys\n"
    "pipes = [fcntl.fcntl(int(each), fcntl.F_DUPFD, 10) for each in sys.argv[1:3]]\n"
    "os.dup2(pipes[0], 3); os.dup2(pipes[1], 4)\n"
    "os.execv(sys.argv[3], sys.argv[3:])\n"
)


def find_browser() -> str:
    """Return the path of Chromium (KCTL_TEST_BROWSER overrides it). Raises RuntimeError without one."""
    named = os.environ.get("KCTL_TEST_BROWSER")
    found = named or next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        raise RuntimeError("these tests need Chromium: as root, apt-get install -y chromium-headless-shell")
    return found


class Browser:
    """A running browser; `with` ends it. Pages have no network but file://."""

    def __init__(self) -> None:
        self._home = tempfile.mkdtemp(prefix="kctl-browser-")
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        argv = [
            sys.executable, "-c", _LAUNCH, str(to_read), str(to_write), find_browser(), "--headless",
            "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--disable-background-networking", "--hide-scrollbars", f"--user-data-dir={self._home}/profile",
            "about:blank",
        ]  # fmt: skip
        environment = {**os.environ, "HOME": self._home}
        with Path(self._home, "log").open("wb") as log:
            self._process = subprocess.Popen(
                argv, pass_fds=(to_read, to_write), stdout=log, stderr=log, env=environment, start_new_session=True
            )
        os.close(to_read)
        os.close(to_write)
        self._number = 0
        self._buffer = b""
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._read)
        os.close(self._write)
        shutil.rmtree(self._home, ignore_errors=True)

    def send(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Return the result of a command. Raises AssertionError if it fails, TimeoutError."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + _TIMEOUT_S
        while True:
            found = self._next(deadline)
            if found.get("id") == self._number:
                assert "error" not in found, found["error"]
                result: dict[str, Any] = found["result"]
                return result
            self.events.append(found)

    def _next(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(deadline - time.monotonic(), 0))
            data = os.read(self._read, 1 << 20) if ready else b""
            if not data:
                raise TimeoutError(f"the browser says nothing: {Path(self._home, 'log').read_text()[-2000:]}")
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    @contextmanager
    def page(self, file: Path, *, width: int = 1280, height: int = 900, dark: bool = False) -> Iterator[Page]:
        """Yield a loaded page."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        try:
            for domain in ("Page", "Network", "Log", "Runtime", "Audits"):
                page.send(f"{domain}.enable")
            page.resize(width, height)
            page.media(dark=dark)
            page.send("Page.navigate", url=file.as_uri())
            page.wait("document.readyState === 'complete'")
            yield page
        finally:
            self.send("Target.closeTarget", targetId=target)


class Page:
    """One page of a browser."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser, self._session = browser, session

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command of the protocol for this page."""
        return self._browser.send(method, self._session, **parameters)

    def run(self, script: str) -> Any:
        """Return the value of a JavaScript expression. Raises AssertionError with its exception."""
        found = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, condition: str) -> None:
        """Wait until a JavaScript expression is true."""
        deadline = time.monotonic() + _TIMEOUT_S
        while not self.run(condition):
            if time.monotonic() > deadline:
                raise TimeoutError(condition)
            time.sleep(0.05)

    def resize(self, width: int, height: int) -> None:
        """Set the size of the window in CSS pixels."""
        mobile = width < 600
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile
        )  # fmt: skip

    def media(self, *, dark: bool = False, kind: str = "") -> None:
        """Emulate media features of the reader's system, and the medium."""
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.send("Emulation.setEmulatedMedia", media=kind, features=features)

    def press(self, key: str) -> None:
        """Press a key: a character, or Tab, Enter, Escape."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27}
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        code = codes.get(key, ord(key[0].upper()))
        self.send(
            "Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", key=key, text=text,
            windowsVirtualKeyCode=code,
        )  # fmt: skip
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def screenshot(self, file: Path, *, whole: bool = False) -> bytes:
        """Return a PNG of the visible part, or of the whole page."""
        found = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        data = base64.b64decode(found["data"])
        file.write_bytes(data)
        return data

    def pdf(self) -> bytes:
        """Return the printed page."""
        return base64.b64decode(self.send("Page.printToPDF", printBackground=True)["data"])

    def told(self, *methods: str) -> list[dict[str, Any]]:
        """Return the events of these methods so far."""
        self.run("0")
        return [
            event["params"]
            for event in self._browser.events
            if event["method"] in methods and event.get("sessionId") == self._session
        ]

    @property
    def requested(self) -> list[str]:
        """Return the URLs that the page has requested, including its own."""
        return [event["request"]["url"] for event in self.told("Network.requestWillBeSent")]

    @property
    def complaints(self) -> list[str]:
        """Return errors, warnings and violations of the page's policy."""
        entries = [event["entry"]["text"] for event in self.told("Log.entryAdded")]
        thrown = [event["exceptionDetails"]["text"] for event in self.told("Runtime.exceptionThrown")]
        issues = [json.dumps(event["issue"]) for event in self.told("Audits.issueAdded")]
        return [*entries, *thrown, *issues]
