"""Schema registries: schemas by id, with their references. Each schema is fetched once.

Confluent's REST API, which others (Apicurio's /apis/ccompat, Karapace, Redpanda) have too:

    GET URL/schemas/ids/ID, URL/schemas/guids/GUID     {"schema": text, "schemaType": …, "references": [{name, subject,
    GET URL/subjects/SUBJECT/versions/VERSION           version}]}; with ?format=serialized Protobuf as a descriptor

Apicurio's own, where the URL is one of it (…/apis/registry/v2 or v3):

    GET URL/ids/globalIds/ID, URL/ids/contentIds/ID    the text itself; …/references has what it refers to
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import quote

from kctl.base.deadline import Deadline
from kctl.errors import AuthenticationFailed, ConnectionFailed
from kctl.records.decode.registry_http import MAX_ANSWER_BYTES, NO_LOGIN, HttpAnswer, RegistryAccess, RegistryHttp
from kctl.records.decode.schema_ids import IdKind, SchemaId

AVRO, PROTOBUF, JSON = "AVRO", "PROTOBUF", "JSON"
_MOST_SCHEMAS = 10_000  # that are remembered; ids come with the records
_MOST_REFERENCES = 200  # of one schema, the references' own included
_NOT_FOUND = 404
_NATIVE = re.compile(r"/apis/registry/v\d+$")
_CONTENT = re.compile(r"/v[3-9]$")  # where a version's text has a path of its own
_COMPATIBLE = re.compile(r"/apis/ccompat/v\d+$")


class NoSchema(ValueError):
    """The registry has no such schema, or none that can be used: why."""


class SchemaText(NamedTuple):
    """A schema as it is written. name: by which the schema that refers to it does (Protobuf: imports it).
    serialized: Protobuf as a FileDescriptorProto in base64, from registries that offer it."""

    name: str
    text: str
    serialized: str | None = None


class Schema(NamedTuple):
    """kind: AVRO, PROTOBUF, JSON or another. references: those that it refers to, each behind what it needs itself."""

    kind: str
    main: SchemaText
    references: tuple[SchemaText, ...]


class SchemaRegistry:
    """Asks one registry, and remembers what it said. For one thread."""

    def __init__(self, url: str, *, access: RegistryAccess = NO_LOGIN, timeout_s: float = 10.0) -> None:
        """timeout_s: for one schema with its references. Raises UsageError for an invalid registry URL."""
        self._http, self._timeout_s = RegistryHttp(url, access, timeout_s), timeout_s
        self._known: dict[SchemaId, Schema | NoSchema] = {}

    def schema(self, schema_id: SchemaId) -> Schema:
        """Return a schema by its id. Raises NoSchema, ConnectionFailed's subclasses, Refused."""
        found = self._known.get(schema_id)
        if found is None:
            try:
                found = _Question(self._http, Deadline(self._timeout_s)).ask(schema_id)
            except NoSchema as exc:
                found = exc
            if len(self._known) < _MOST_SCHEMAS:
                self._known[schema_id] = found
        if isinstance(found, NoSchema):
            raise found
        return found


class _Question:
    """Fetches one schema and its references within one deadline."""

    def __init__(self, http: RegistryHttp, deadline: Deadline) -> None:
        self._http, self._deadline = http, deadline
        self._references: dict[tuple[str, ...], SchemaText] = {}
        self._under_way: set[tuple[str, ...]] = set()

    def ask(self, schema_id: SchemaId) -> Schema:
        what, url = f"schema {schema_id}", self._http.url
        if schema_id.guid is not None:
            return self._confluent(f"/schemas/guids/{schema_id.guid}", what)
        if _NATIVE.search(url):
            return self._apicurio(schema_id, what, str)
        if schema_id.kind is IdKind.GLOBAL and _COMPATIBLE.search(url):
            # The compatible API has content ids only; Apicurio's own is beside it.
            return self._apicurio(schema_id, what, lambda base: _COMPATIBLE.sub("/apis/registry/v2", base))
        return self._confluent(f"/schemas/ids/{schema_id.number}", what)

    # --- Confluent's API ----------------------------------------------------------------------------------------------

    def _confluent(self, path: str, what: str) -> Schema:
        answer = self._json(path, what)
        kind = str(answer.get("schemaType") or AVRO)[:40].upper()
        self._follow(answer.get("references"), kind, what, self._confluent_reference)
        return Schema(kind, self._schema_text(answer, kind, path, what, ""), tuple(self._references.values()))

    def _confluent_reference(self, each: dict[str, Any], kind: str) -> SchemaText:
        subject, version = str(each["subject"]), int(each["version"])
        path, what = f"/subjects/{quote(subject, safe='')}/versions/{version}", f"{subject} version {version}"
        answer = self._json(path, what)
        self._follow(answer.get("references"), kind, what, self._confluent_reference)
        return self._schema_text(answer, kind, path, what, str(each.get("name") or ""))

    def _schema_text(self, answer: dict[str, Any], kind: str, path: str, what: str, name: str) -> SchemaText:
        text = answer.get("schema")
        if not isinstance(text, str):
            raise NoSchema(f"{what} has no text")
        if kind != PROTOBUF:
            return SchemaText(name, text)
        serialized = self._http.get(f"{path}?format=serialized", self._deadline)  # which not every registry knows
        parsed = _parsed(serialized) if serialized.status == 200 and not serialized.too_large else None
        given = parsed.get("schema") if isinstance(parsed, dict) else None
        return SchemaText(name, text, given if isinstance(given, str) and given != text else None)

    # --- Apicurio's own -----------------------------------------------------------------------------------------------

    def _apicurio(self, schema_id: SchemaId, what: str, rebase: Callable[[str], str]) -> Schema:
        collection = "globalIds" if schema_id.is_global else "contentIds"
        path = f"/ids/{collection}/{schema_id.number}"
        answer = self._get(f"{path}?returnArtifactType=true", what, rebase)
        text = _decoded(answer, what)
        kind = answer.artifact_type or _guessed_kind(text)

        def reference(each: dict[str, Any], kind: str) -> SchemaText:
            group, artifact, version = (str(each[key] or "default") for key in ("groupId", "artifactId", "version"))
            place = "/".join(quote(part, safe="") for part in (group, "artifacts", artifact, "versions", version))
            name = f"{artifact} version {version}"
            content = "/content" if _CONTENT.search(rebase(self._http.url)) else ""
            inner = _decoded(self._get(f"/groups/{place}{content}", name, rebase), name)
            self._follow(self._list(f"/groups/{place}/references", name, rebase), kind, name, reference)
            return SchemaText(str(each.get("name") or ""), inner)

        self._follow(self._list(f"{path}/references", what, rebase), kind, what, reference)
        return Schema(kind, SchemaText("", text), tuple(self._references.values()))

    def _list(self, path: str, what: str, rebase: Callable[[str], str]) -> object:
        answer = self._http.get(path, self._deadline, rebase)
        if answer.status == _NOT_FOUND:
            return []
        return _parsed(self._checked(answer, what))

    # --- both ---------------------------------------------------------------------------------------------------------

    def _follow(
        self, references: object, kind: str, what: str, fetch: Callable[[dict[str, Any], str], SchemaText]
    ) -> None:
        """Collect references, each after its own references."""
        if references is not None and not isinstance(references, list):
            raise NoSchema(f"{what} has references that cannot be read")
        for each in references or ():
            try:
                at = tuple(str(each.get(key)) for key in ("groupId", "subject", "artifactId", "version"))
                if at in self._references:
                    continue
                if at in self._under_way or len(self._under_way) + len(self._references) >= _MOST_REFERENCES:
                    raise NoSchema(f"{what} refers to itself, or to more than {_MOST_REFERENCES} schemas")
                self._under_way.add(at)
                text = fetch(each, kind)
            except (AttributeError, TypeError, KeyError, ValueError) as exc:
                if isinstance(exc, NoSchema):
                    raise
                raise NoSchema(f"{what} has references that cannot be read") from None
            self._under_way.discard(at)
            self._references[at] = text

    def _json(self, path: str, what: str) -> dict[str, Any]:
        answer = self._get(path, what)
        parsed = _parsed(answer)
        if not isinstance(parsed, dict):
            raise ConnectionFailed(
                f"{answer.url} does not respond like a schema registry", hint="is this the URL of the registry?"
            )
        return parsed

    def _get(self, path: str, what: str, rebase: Callable[[str], str] = str) -> HttpAnswer:
        return self._checked(self._http.get(path, self._deadline, rebase), what)

    def _checked(self, answer: HttpAnswer, what: str) -> HttpAnswer:
        """Raises NoSchema, AuthenticationFailed, ConnectionFailed for an answer that is none."""
        if answer.status == _NOT_FOUND:
            raise NoSchema(f"the registry has no {what}")
        if answer.status in {401, 403}:
            raise AuthenticationFailed(
                f"the schema registry {answer.url} refused the login (HTTP {answer.status})",
                hint="set KCTL_SCHEMA_REGISTRY_USER_INFO to user:password, or --schema-registry-user-info-file FILE",
            )
        if answer.status != 200:
            moved = "; redirects are not followed" if 300 <= answer.status < 400 else ""
            raise ConnectionFailed(
                f"the schema registry {answer.url} answered HTTP {answer.status} for {what}{moved}",
                hint="use the new URL of the registry" if moved else None,
            )
        if answer.too_large:
            raise NoSchema(f"{what} is larger than {MAX_ANSWER_BYTES >> 20} MiB")
        return answer


def _parsed(answer: HttpAnswer) -> object:
    try:
        return json.loads(answer.data)
    except (ValueError, RecursionError):
        return None


def _decoded(answer: HttpAnswer, what: str) -> str:
    try:
        return answer.data.decode()
    except UnicodeDecodeError:
        raise NoSchema(f"{what} has no text") from None


def _guessed_kind(text: str) -> str:
    """Of a registry that does not say: JSON text with "$schema" or "properties" is JSON Schema."""
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return PROTOBUF
    return JSON if isinstance(parsed, dict) and parsed.keys() & {"$schema", "properties", "$ref", "$id"} else AVRO
