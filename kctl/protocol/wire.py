"""The few Kafka messages that every command needs, encoded and decoded without a client library.

A command like `topic list` is one ApiVersions and one Metadata request: importing a whole client for them would
take longer than the rest of the command. Everything else goes through kafka-python's message classes.

A frame is int32 size, header, body, all big-endian (https://kafka.apache.org/protocol):

    request header v1   int16 api_key, int16 api_version, int32 correlation_id, nullable string client_id
    request header v2   the same, then tagged fields (flexible versions, KIP-482)
    response header     int32 correlation_id; v1 (flexible versions, except ApiVersions): then tagged fields

Strings are an int16 length and UTF-8, arrays an int32 count; in flexible versions both have an unsigned varint of
length + 1, and every structure ends in tagged fields.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from kctl.base.binary_layout import INT16, INT32, INT64, Layout
from kctl.protocol.codes import ErrorCode

API_VERSIONS_FLEXIBLE, API_VERSIONS_MAX = 3, 4  # v3 (2.4): KIP-511; v4 (3.9) has the same layout
CLIENT_ID = "kctl"

# A request header v1; the client id follows.
_REQUEST_HEADER = Layout(
    api_key=INT16,
    api_version=INT16,
    correlation_id=INT32,
    client_id_length=INT16,
)
# The beginning of every response.
RESPONSE_HEADER = Layout(
    size=INT32,  # bytes after this field
    correlation_id=INT32,
)
_API_RANGE = Layout(api_key=INT16, min_version=INT16, max_version=INT16)


class WireError(Exception):
    """Bytes that do not follow the layout."""


class Reader:
    """A reader of one response body. All methods raise WireError past the end of the body."""

    def __init__(self, data: bytes | bytearray | memoryview, flexible: bool = False) -> None:
        self._data = bytes(data)
        self._at = 0
        self.flexible = flexible

    @property
    def data(self) -> bytes:
        return self._data

    @property
    def position(self) -> int:
        return self._at

    def take(self, count: int) -> bytes:
        end = self._at + count
        if count < 0 or end > len(self._data):
            raise WireError("cut short")
        piece = self._data[self._at : end]
        self._at = end
        return piece

    def int8(self) -> int:
        return self.take(1)[0]

    def int16(self) -> int:
        return int(INT16.unpack(self.take(INT16.size))[0])

    def int32(self) -> int:
        return int(INT32.unpack(self.take(INT32.size))[0])

    def int64(self) -> int:
        return int(INT64.unpack(self.take(INT64.size))[0])

    def unsigned_varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.int8()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 28:
                raise WireError("varint too long")

    def count(self) -> int:
        """Return the length of an array; -1 for null."""
        return self.unsigned_varint() - 1 if self.flexible else self.int32()

    def nullable_string(self) -> str | None:
        length = self.unsigned_varint() - 1 if self.flexible else self.int16()
        return None if length < 0 else self.take(length).decode("utf-8", "replace")

    def string(self) -> str:
        return self.nullable_string() or ""

    def nullable_bytes(self) -> bytes | None:
        length = self.unsigned_varint() - 1 if self.flexible else self.int32()
        return None if length < 0 else self.take(length)

    def tags(self) -> None:
        """Skip the tagged fields that end a structure of a flexible version."""
        if self.flexible:
            for _ in range(self.unsigned_varint()):
                self.unsigned_varint()
                self.take(self.unsigned_varint())


def string(text: str) -> bytes:
    """Encode a string for a version that is not flexible."""
    raw = text.encode()
    return INT16.pack(len(raw)) + raw


def compact_string(text: str) -> bytes:
    """Encode a string for a flexible version."""
    raw = text.encode()
    return unsigned_varint(len(raw) + 1) + raw


def unsigned_varint(value: int) -> bytes:
    """Encode an integer in 7 bits per byte, lowest bits first."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def frame(api_key: int, version: int, correlation_id: int, body: bytes, *, flexible: bool = False) -> bytes:
    """Return a whole request, with its size."""
    header = request_header(api_key, version, correlation_id) + (b"\0" if flexible else b"")
    return INT32.pack(len(header) + len(body)) + header + body


def request_header(api_key: int, version: int, correlation_id: int) -> bytes:
    """Return a request header v1."""
    client = CLIENT_ID.encode()
    return _REQUEST_HEADER.pack(api_key, version, correlation_id, len(client)) + client


# --- ApiVersions (KIP-35) -----------------------------------------------------------------------------------------


def encode_api_versions(version: int) -> bytes:
    """Return an ApiVersionsRequest v0 to v4; from v3 with client name and version, which brokers check (KIP-511)."""
    if version < API_VERSIONS_FLEXIBLE:
        return b""
    from kctl import __version__

    software_version = re.sub(r"[^A-Za-z0-9.-]", "-", __version__)
    return compact_string(CLIENT_ID) + compact_string(software_version) + b"\0"


def decode_api_versions(reader: Reader, version: int = 0) -> tuple[int, dict[int, tuple[int, int]]]:
    """Return the error code of an ApiVersionsResponse v0 to v4, and API key → (lowest, highest version).

    The header never has tagged fields. With UNSUPPORTED_VERSION the body is of version 0, whatever was requested.
    """
    error = reader.int16()
    reader.flexible = version >= API_VERSIONS_FLEXIBLE and error != ErrorCode.UNSUPPORTED_VERSION
    ranges = {}
    for _ in range(reader.count()):
        key, low, high = _API_RANGE.unpack(reader.take(_API_RANGE.size))
        reader.tags()
        ranges[key] = (low, high)
    return error, ranges


# --- SaslHandshake v1, SaslAuthenticate v1 (KIP-43, KIP-152, KIP-368) ----------------------------------------------


class SaslHandshake(NamedTuple):
    """A SaslHandshake response. error_code: 33 if the mechanism is not enabled, 34 if the listener has no SASL."""

    error_code: int
    mechanisms: tuple[str, ...]


class SaslAuthentication(NamedTuple):
    """A SaslAuthenticate response. session_lifetime_ms: 0 if the session does not expire."""

    error_code: int
    error_message: str | None
    auth_bytes: bytes
    session_lifetime_ms: int


def decode_sasl_handshake(reader: Reader) -> SaslHandshake:
    """Decode a SaslHandshakeResponse v0 or v1."""
    error = reader.int16()
    return SaslHandshake(error, tuple(reader.string() for _ in range(reader.int32())))


def encode_sasl_authenticate(token: bytes) -> bytes:
    """Return a SaslAuthenticateRequest v0 or v1."""
    return INT32.pack(len(token)) + token


def decode_sasl_authenticate(reader: Reader, version: int) -> SaslAuthentication:
    """Decode a SaslAuthenticateResponse v0 or v1."""
    error, message, token = reader.int16(), reader.nullable_string(), reader.nullable_bytes()
    lifetime = reader.int64() if version >= 1 else 0
    return SaslAuthentication(error, message, token or b"", max(0, lifetime))
