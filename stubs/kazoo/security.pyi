# Hand-written: kazoo ships no types. Only what kctl's tests call.
from typing import Any

def make_digest_acl(username: str, password: str, *, all: bool = ...) -> Any: ...
