"""Schema registries: schemas by id, with their references. Each schema is fetched once.

Confluent's REST API, which other registries offer too (Apicurio's /apis/ccompat, Karapace, Redpanda):

    GET URL/schemas/ids/ID, URL/schemas/guids/GUID     {"schema": text, "schemaType": …, "references": [{name, subject,
    GET URL/subjects/SUBJECT/versions/VERSION           version}]}; with ?format=serialized Protobuf as a descriptor

Apicurio's native API, for its URLs (…/apis/registry/v2 or v3):

    GET URL/ids/globalIds/ID, URL/ids/contentIds/ID    the text itself; …/references has its references
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
_MAX_SCHEMAS = 10_000  # in the cache; the ids come from records
_MAX_REFERENCES = 200  # of one schema, including indirect ones
_NOT_FOUND = 404
_NATIVE = re.compile(r"/apis/registry/v\d+$")
_CONTENT = re.compile(r"/v[3-9]$")  # versions with a separate path for the text
_COMPATIBLE = re.compile(r"/apis/ccompat/v\d+$")


class NoSchema(ValueError):
    """The registry does not have the schema, or the schema is unusable."""


class SchemaText(NamedTuple):
    """The text of a schema.

    name: as used by references (Protobuf: imports). serialized: a FileDescriptorProto in base64, for Protobuf from
    registries that offer it.
    """

    name: str
    text: str
    serialized: str | None = None


class Schema(NamedTuple):
    """A schema. kind: AVRO, PROTOBUF, JSON or another. references: all of them, each after its own references."""

    kind: str
    main: SchemaText
    references: tuple[SchemaText, ...]


class SchemaRegistry:
    """A client of one registry, with a cache of schemas. Not thread-safe."""

    def __init__(self, url: str, *, access: RegistryAccess = NO_LOGIN, timeout_s: float = 10.0) -> None:
        """timeout_s: for one schema with its references. Raises UsageError for an invalid registry URL."""
        self._http, self._timeout_s = RegistryHttp(url, access, timeout_s), timeout_s
        self._schemas: dict[SchemaId, Schema | NoSchema] = {}

    def schema(self, schema_id: SchemaId) -> Schema:
        """Return a schema by its id. Raises NoSchema, subclasses of ConnectionFailed, Refused."""
        schema = self._schemas.get(schema_id)
        if schema is None:
            try:
                schema = _SchemaFetch(self._http, Deadline(self._timeout_s)).fetch(schema_id)
            except NoSchema as exc:
                schema = exc
            if len(self._schemas) < _MAX_SCHEMAS:
                self._schemas[schema_id] = schema
        if isinstance(schema, NoSchema):
            raise schema
        return schema


class _SchemaFetch:
    """The requests for one schema and its references, within one deadline."""

    def __init__(self, http: RegistryHttp, deadline: Deadline) -> None:
        self._http, self._deadline = http, deadline
        self._references: dict[tuple[str, ...], SchemaText] = {}
        self._pending: set[tuple[str, ...]] = set()

    def fetch(self, schema_id: SchemaId) -> Schema:
        what, url = f"schema {schema_id}", self._http.url
        if schema_id.guid is not None:
            return self._confluent(f"/schemas/guids/{schema_id.guid}", what)
        if _NATIVE.search(url):
            return self._apicurio(schema_id, what, str)
        if schema_id.kind is IdKind.GLOBAL and _COMPATIBLE.search(url):
            # The compatible API only has content ids; Apicurio's native API is on the same host.
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
        serialized = self._http.get(f"{path}?format=serialized", self._deadline)  # not supported by every registry
        parsed = _parsed(serialized) if serialized.status == 200 and not serialized.too_large else None
        data = parsed.get("schema") if isinstance(parsed, dict) else None
        return SchemaText(name, text, data if isinstance(data, str) and data != text else None)

    # --- Apicurio's native API ----------------------------------------------------------------------------------------

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

    # --- both APIs ----------------------------------------------------------------------------------------------------

    def _follow(
        self, references: object, kind: str, what: str, fetch: Callable[[dict[str, Any], str], SchemaText]
    ) -> None:
        """Collect references, each after its own references."""
        if references is not None and not isinstance(references, list):
            raise NoSchema(f"{what} has references that cannot be read")
        for each in references or ():
            try:
                reference_key = tuple(str(each.get(key)) for key in ("groupId", "subject", "artifactId", "version"))
                if reference_key in self._references:
                    continue
                if reference_key in self._pending or len(self._pending) + len(self._references) >= _MAX_REFERENCES:
                    raise NoSchema(f"{what} refers to itself, or to more than {_MAX_REFERENCES} schemas")
                self._pending.add(reference_key)
                text = fetch(each, kind)
            except (AttributeError, TypeError, KeyError, ValueError) as exc:
                if isinstance(exc, NoSchema):
                    raise
                raise NoSchema(f"{what} has references that cannot be read") from None
            self._pending.discard(reference_key)
            self._references[reference_key] = text

    def _json(self, path: str, what: str) -> dict[str, Any]:
        answer = self._get(path, what)
        parsed = _parsed(answer)
        if not isinstance(parsed, dict):
            raise ConnectionFailed(
                f"{answer.url} does not respond like a schema registry", hint="check the URL of the registry"
            )
        return parsed

    def _get(self, path: str, what: str, rebase: Callable[[str], str] = str) -> HttpAnswer:
        return self._checked(self._http.get(path, self._deadline, rebase), what)

    def _checked(self, answer: HttpAnswer, what: str) -> HttpAnswer:
        """Return the response. Raises NoSchema, AuthenticationFailed, ConnectionFailed for errors."""
        if answer.status == _NOT_FOUND:
            raise NoSchema(f"the registry has no {what}")
        if answer.status in {401, 403}:
            raise AuthenticationFailed(
                f"the schema registry {answer.url} rejected the login (HTTP {answer.status})",
                hint="set KCTL_SCHEMA_REGISTRY_USER_INFO to user:password, or --schema-registry-user-info-file FILE",
            )
        if answer.status != 200:
            moved = "; redirects are not followed" if 300 <= answer.status < 400 else ""
            raise ConnectionFailed(
                f"the schema registry {answer.url} returned HTTP {answer.status} for {what}{moved}",
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
    """Guess the type of a schema if the registry does not return it: JSON text with e.g. "$schema" is JSON Schema."""
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return PROTOBUF
    return JSON if isinstance(parsed, dict) and parsed.keys() & {"$schema", "properties", "$ref", "$id"} else AVRO
