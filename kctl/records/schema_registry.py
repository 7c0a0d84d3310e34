"""A schema registry (Confluent's REST API, which others have too): schemas by id, with what they refer to.

    GET URL/schemas/ids/ID                      {"schema": text, "schemaType": …, "references": [{subject, version}]}
    GET URL/subjects/SUBJECT/versions/VERSION   the same of what is referred to

Each schema is asked for once. Nothing else is sent than these; redirects are not followed, because they could carry the
password elsewhere.
"""

from __future__ import annotations

import base64
import json
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlsplit

from kctl.errors import AuthenticationFailed, ConnectionFailed, ConnectionTimedOut, UsageError

if TYPE_CHECKING:
    from urllib.request import OpenerDirector

MAX_ANSWER_BYTES = 4 << 20
_MOST_SCHEMAS = 10_000  # that are remembered; ids come with the records
_MOST_REFERENCES = 200  # of one schema, the references' own included
_NOT_FOUND = 404


class NoSchema(ValueError):
    """The registry has no such schema, or none that can be used: why."""


class Schema(NamedTuple):
    """text: of the schema itself; references: texts of those that it refers to, each behind what it needs itself."""

    text: str
    references: tuple[str, ...]


class SchemaRegistry:
    """Asks one registry, and remembers what it said. For one thread."""

    def __init__(self, url: str, *, user_info: str | None = None, timeout_s: float = 10.0) -> None:
        """user_info: «user:password» for basic authentication. Raises UsageError for what is no URL of a registry."""
        self.url, self._timeout_s = _checked(url), timeout_s
        self._headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        if user_info is not None:
            token = base64.b64encode(user_info.encode()).decode()
            self._headers["Authorization"] = f"Basic {token}"
        self._known: dict[int, Schema | NoSchema] = {}
        self._opener: OpenerDirector | None = None

    def schema(self, schema_id: int) -> Schema:
        """An Avro schema by its id. Raises NoSchema, ConnectionFailed's subclasses."""
        found = self._known.get(schema_id)
        if found is None:
            try:
                found = self._ask(schema_id)
            except NoSchema as exc:
                found = exc
            if len(self._known) < _MOST_SCHEMAS:
                self._known[schema_id] = found
        if isinstance(found, NoSchema):
            raise found
        return found

    def _ask(self, schema_id: int) -> Schema:
        answer = self._get(f"/schemas/ids/{schema_id}", f"schema {schema_id}")
        kind = answer.get("schemaType") or "AVRO"
        if kind != "AVRO":
            raise NoSchema(f"schema {schema_id} is of type {str(kind)[:40]}, not AVRO")
        references: dict[tuple[str, str], str] = {}
        self._follow(answer, references, set(), f"schema {schema_id}")
        return Schema(_text(answer, f"schema {schema_id}"), tuple(references.values()))

    def _follow(
        self, answer: dict[str, Any], found: dict[tuple[str, str], str], under_way: set[tuple[str, str]], what: str
    ) -> None:
        """Collect what `answer` refers to, each behind what it refers to itself."""
        references = answer.get("references") or []
        if not isinstance(references, list):
            raise NoSchema(f"{what} has references that cannot be read")
        for each in references:
            try:
                at = str(each["subject"]), str(int(each["version"]))
            except (TypeError, KeyError, ValueError):
                raise NoSchema(f"{what} has references that cannot be read") from None
            if at in found:
                continue
            if at in under_way or len(under_way) + len(found) >= _MOST_REFERENCES:
                raise NoSchema(f"{what} refers to itself, or to more than {_MOST_REFERENCES} schemas")
            under_way.add(at)
            subject, version = at
            inner = self._get(f"/subjects/{quote(subject, safe='')}/versions/{version}", f"{subject} version {version}")
            self._follow(inner, found, under_way, what)
            under_way.discard(at)
            found[at] = _text(inner, f"{subject} version {version}")

    def _get(self, path: str, what: str) -> dict[str, Any]:
        from urllib.error import HTTPError, URLError
        from urllib.request import Request

        request = Request(self.url + path, headers=self._headers)  # noqa: S310 - _checked lets only http(s) pass
        try:
            with self._open(request) as response:
                data = response.read(MAX_ANSWER_BYTES + 1)
        except HTTPError as exc:
            with exc:
                raise self._refused(exc.code, what) from None
        except TimeoutError:
            raise self._silent() from None
        except (URLError, OSError, HTTPException) as exc:
            reason = getattr(exc, "reason", None)
            if isinstance(reason, TimeoutError):
                raise self._silent() from None
            raise ConnectionFailed(
                f"the schema registry {self.url} cannot be reached: {reason or exc or type(exc).__name__}",
                hint="check --schema-registry, and that it can be reached from this machine",
            ) from None
        if len(data) > MAX_ANSWER_BYTES:
            raise NoSchema(f"{what} is larger than {MAX_ANSWER_BYTES >> 20} MiB")
        try:
            answer = json.loads(data)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise ConnectionFailed(
                f"{self.url} does not answer as a schema registry does", hint="is this the registry's URL?"
            )
        return answer

    def _open(self, request: Any) -> Any:
        if self._opener is None:
            from urllib.request import HTTPRedirectHandler, build_opener

            class Stay(HTTPRedirectHandler):
                def redirect_request(self, *_: Any) -> None:
                    return None

            self._opener = build_opener(Stay)
        return self._opener.open(request, timeout=self._timeout_s)

    def _refused(self, status: int, what: str) -> Exception:
        if status == _NOT_FOUND:
            return NoSchema(f"the registry has no {what}")
        if status in {401, 403}:
            return AuthenticationFailed(
                f"the schema registry {self.url} refused the login (HTTP {status})",
                hint="set KCTL_SCHEMA_REGISTRY_USER_INFO to user:password",
            )
        moved = "; redirects are not followed" if 300 <= status < 400 else ""
        return ConnectionFailed(f"the schema registry {self.url} answered HTTP {status} for {what}{moved}")

    def _silent(self) -> ConnectionTimedOut:
        return ConnectionTimedOut(
            f"the schema registry {self.url} gave no answer within {self._timeout_s:g} s",
            hint="--timeout gives it more time",
        )


def _text(answer: dict[str, Any], what: str) -> str:
    text = answer.get("schema")
    if not isinstance(text, str):
        raise NoSchema(f"{what} has no text")
    return text


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        port_is_one = parts.port is None or parts.port > 0
    except ValueError:
        parts, port_is_one = urlsplit(""), False
    if parts.scheme not in {"http", "https"} or not parts.hostname or not port_is_one or parts.query or parts.fragment:
        raise UsageError("the schema registry is no http:// or https:// URL", hint="for example http://localhost:8081")
    if parts.username is not None or parts.password is not None:
        raise UsageError(
            "the schema registry's URL has a user or password in it, which others can see",
            hint="set KCTL_SCHEMA_REGISTRY_USER_INFO to user:password instead",
        )
    if any(ord(char) <= 32 or ord(char) == 127 for char in url):
        raise UsageError("the schema registry's URL has a space or control character in it")
    return url.rstrip("/")
