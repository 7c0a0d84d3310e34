# Hand-written: kazoo ships no types. Only what kctl calls.
from typing import NamedTuple

class ZnodeStat(NamedTuple):
    czxid: int
    mzxid: int
    ctime: int
    mtime: int
    version: int
    cversion: int
    aversion: int
    ephemeralOwner: int
    dataLength: int
    numChildren: int
    pzxid: int

class _Handler:
    timeout_exception: type[Exception]

class KazooClient:
    handler: _Handler
    chroot: str
    def __init__(
        self,
        hosts: str = ...,
        timeout: float = ...,
        *,
        read_only: bool | None = ...,
        connection_retry: dict[str, float] | None = ...,
    ) -> None: ...
    def start(self, timeout: float = ...) -> None: ...
    def stop(self) -> None: ...
    def close(self) -> None: ...
    def exists(self, path: str) -> ZnodeStat | None: ...
    def get(self, path: str) -> tuple[bytes, ZnodeStat]: ...
    def get_children(self, path: str) -> list[str]: ...
