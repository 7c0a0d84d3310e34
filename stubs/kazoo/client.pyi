# Hand-written: kazoo ships no types. Only what kctl calls.
from collections.abc import Callable
from typing import Any, NamedTuple

from kazoo.protocol.states import ZnodeStat

class _Id(NamedTuple):
    scheme: str
    id: str

class _Acl(NamedTuple):
    perms: int
    id: _Id

class _Handler:
    timeout_exception: type[Exception]

class _AsyncResult:
    def get(self, block: bool = ..., timeout: float | None = ...) -> Any: ...

class KazooClient:
    handler: _Handler
    chroot: str
    connected: bool
    def __init__(
        self,
        hosts: str = ...,
        timeout: float = ...,
        *,
        read_only: bool | None = ...,
        connection_retry: dict[str, float] | None = ...,
        use_ssl: bool = ...,
        ca: str | None = ...,
        certfile: str | None = ...,
        keyfile: str | None = ...,
        keyfile_password: str | None = ...,
        verify_certs: bool = ...,
        check_hostname: bool = ...,
    ) -> None: ...
    def start(self, timeout: float = ...) -> None: ...
    def stop(self) -> None: ...
    def close(self) -> None: ...
    def add_listener(self, listener: Callable[[object], None]) -> None: ...
    def exists(self, path: str, watch: Callable[[object], None] | None = ...) -> ZnodeStat | None: ...
    def get(self, path: str) -> tuple[bytes | None, ZnodeStat]: ...
    def get_acls(self, path: str) -> tuple[list[_Acl], ZnodeStat]: ...
    def get_children(self, path: str, watch: Callable[[object], None] | None = ...) -> list[str]: ...
    def get_children_async(self, path: str, *, include_data: bool = ...) -> _AsyncResult: ...
    def create(
        self, path: str, value: bytes = ..., acl: list[Any] | None = ..., *, ephemeral: bool = ..., makepath: bool = ...
    ) -> str: ...
    def set(self, path: str, value: bytes) -> ZnodeStat: ...
    def delete(self, path: str, *, recursive: bool = ...) -> bool: ...
