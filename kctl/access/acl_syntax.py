"""The sentence form of ACLs: "allow alice read topic orders*", "deny bob all cluster from 10.0.0.1".

    ACL        = ("allow" | "deny") PRINCIPAL OPERATION {"," OPERATION} RESOURCE ["from" HOST]
    PRINCIPAL  = "*" | NAME | TYPE ":" NAME                 a NAME without a colon is User:NAME, "*" is User:*
    OPERATION  = "read" | "write" | … | "all" | "produce" | "consume"
    RESOURCE   = "cluster" | KIND PATTERN
    KIND       = "topic" | "group" | "transactional-id" | "delegation-token" | "user"
    PATTERN    = "*" | NAME | NAME "*"                      all, exactly this name, all with this prefix
    HOST       = an IP address | "*"

Words are separated by spaces. A name that contains spaces, quotes, commas or control characters, or ends in *, is
enclosed in double quotes with JSON escapes; a * after the closing quote still means a prefix.
"""

from __future__ import annotations

import ipaddress
import json
import re
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from kctl.access.model import (
    CLUSTER_NAME,
    EVERYONE,
    OPERATIONS,
    PERMISSIONS,
    RESOURCE_TYPES,
    SUPPORTED,
    WILDCARD,
    Acl,
    AclFilter,
)
from kctl.base.suggestions import did_you_mean
from kctl.base.text import UNSAFE, printable_json
from kctl.errors import UsageError

# The operations that kafka-acls --producer and --consumer add (kafka.admin.AclCommand).
_ROLES = {
    "produce": {"TOPIC": ("WRITE", "CREATE", "DESCRIBE"), "TRANSACTIONAL_ID": ("WRITE", "DESCRIBE")},
    "consume": {"TOPIC": ("READ", "DESCRIBE"), "GROUP": ("READ",)},
}
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BARE = re.compile(r'[^\s",]+')
_PLAIN = re.compile(rf'[^\s",\\{UNSAFE}]+')
MAX_CHARACTERS = 10_000
_QUOTING_HINT = 'enclose a whole name with commas or spaces in double quotes: "User:CN=alice,O=acme"'


@dataclass(frozen=True)
class _Word:
    """A word. star: it is followed by a * (the word * alone is not). at: its position, from 0."""

    text: str
    star: bool
    quoted: bool
    at: int

    @property
    def word(self) -> str:
        """Return the word as written, to compare with keywords."""
        return self.text + "*" * self.star


def keyword(resource_type: str) -> str:
    """Convert TRANSACTIONAL_ID to "transactional-id"."""
    return resource_type.lower().replace("_", "-")


KINDS_BY_KEYWORD = {keyword(name): name for name in RESOURCE_TYPES}
OPERATIONS_BY_KEYWORD = {keyword(name): name for name in OPERATIONS}


# --- formatting -----------------------------------------------------------------------------------------------------


def format_acl(acl: Acl) -> str:
    """Return the ACL as a sentence that `parse_acls` reads."""
    words = [
        acl.permission_type.lower(),
        format_principal(acl.principal),
        keyword(acl.operation),
        format_resource(acl.resource_type, acl.resource_name, acl.pattern_type),
    ]
    return " ".join(words if acl.host == WILDCARD else [*words, "from", quoted_name(acl.host)])


def format_principal(principal: str) -> str:
    """Return "alice" for User:alice; with the type if it is not User or the name has a colon."""
    kind, colon, name = principal.partition(":")
    if principal == EVERYONE:
        return WILDCARD
    if colon and kind == "User" and name.strip() and ":" not in name:
        return quoted_name(name)
    return quoted_name(principal)


def format_resource(resource_type: str, name: str, pattern_type: str) -> str:
    """Return "topic orders*"; "cluster" has no name."""
    if resource_type == "CLUSTER" and name == CLUSTER_NAME and pattern_type == "LITERAL":
        return "cluster"
    if pattern_type == "LITERAL" and name == WILDCARD:
        return f"{keyword(resource_type)} *"
    return f"{keyword(resource_type)} {quoted_name(name)}{'*' if pattern_type == 'PREFIXED' else ''}"


def quoted_name(text: str) -> str:
    """Quote a name that would be parsed differently. Control characters are escaped for terminals (`printable`)."""
    if _PLAIN.fullmatch(text) and not text.endswith("*"):
        return text
    return printable_json(json.dumps(text, ensure_ascii=False))


# --- parsing --------------------------------------------------------------------------------------------------------


def expressions(words: Sequence[str]) -> list[str]:
    """Split command-line arguments into ACLs: one per argument, or one whose words are separate arguments."""
    if len(words) > 1 and words[0].lower() in {"allow", "deny"}:
        return [" ".join(_requoted(word, principal=place == 1) for place, word in enumerate(words))]
    return list(words)


def _requoted(word: str, *, principal: bool) -> str:
    """Restore quotes that the shell removed from a word. Commas also separate operations."""
    needs_quotes = any(char.isspace() for char in word) or (principal and "," in word)
    return json.dumps(word, ensure_ascii=False) if needs_quotes and '"' not in word else word


def parse_acls(text: str, *, strict: bool = True) -> list[Acl]:
    """Parse an ACL sentence into one ACL per operation. Raises UsageError with the position.

    strict: the operations must apply to the resource type and the host must be an address; the host is returned in the
    brokers' notation. For new ACLs, not for ACLs to remove.
    """
    reader = _WordReader(text)
    permission = reader.one_of('"allow" or "deny"', {name.lower(): name for name in PERMISSIONS})
    principal = _principal(reader)
    operations = _operations(reader)
    resource_type, name, pattern = _resource(reader)
    host = _host(reader, strict=strict) if reader.accept_keyword("from") else WILDCARD
    reader.end()
    acls: dict[Acl, None] = {}
    for token, word in operations:
        for operation in _expanded(reader, token, word, resource_type, strict=strict):
            acls[Acl(resource_type, name, pattern, principal, permission, operation, host)] = None
    return list(acls)


def parse_all(texts: Iterable[str], *, strict: bool = True) -> list[Acl]:
    """Parse several sentences and return distinct ACLs."""
    return list(dict.fromkeys(acl for text in texts for acl in parse_acls(text, strict=strict)))


def parse_principal(text: str) -> str:
    """Parse "alice" or "User:alice" into "User:alice". Raises UsageError."""
    if not text.strip():
        raise UsageError("the principal is empty", hint="use alice, User:alice or *")
    if text == WILDCARD:
        return EVERYONE
    kind, colon, name = text.partition(":")
    if colon and not (kind and name):
        raise UsageError(f"{text!r} is not a principal", hint="use TYPE:NAME, for example User:alice")
    return text if colon else f"User:{text}"


def parse_resource(text: str) -> tuple[str, str | None, str | None]:
    """Parse "topic", "topic orders" or "topic orders*" into type, name and pattern type. Name None: all of the type."""
    reader = _WordReader(text)
    if len(reader.tokens) == 1 and (kind := KINDS_BY_KEYWORD.get(reader.tokens[0].word.lower().replace("_", "-"))):
        return kind, None, None
    resource = _resource(reader)
    reader.end()
    return resource


def broker_host(text: str) -> str:
    """Return an address in the brokers' notation (InetAddress.getHostAddress).

    "::1" becomes 0:0:0:0:0:0:0:1, and IPv4-mapped IPv6 becomes IPv4. Text that is not an address is returned unchanged.
    """
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return text
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    groups = ":".join(f"{group:x}" for group in struct.unpack(">8H", address.packed))
    return f"{groups}%{address.scope_id}" if address.scope_id else groups


def parse_operation(text: str) -> str:
    """Parse "read" into READ. Raises UsageError."""
    operation = OPERATIONS_BY_KEYWORD.get(text.lower().replace("_", "-"))
    if operation is None:
        near = did_you_mean(text.lower(), OPERATIONS_BY_KEYWORD)
        raise UsageError(f"{text!r} is not an operation", hint=near or f"use one of {', '.join(OPERATIONS_BY_KEYWORD)}")
    return operation


def parse_filter(
    *, principal: str | None, resource: str | None, covering: str | None, operation: str | None,
    permission: str | None, host: str | None,
) -> AclFilter:  # fmt: skip
    """Return the filter for a command's options. Raises UsageError."""
    if resource is not None and covering is not None:
        raise UsageError("--resource and --covering cannot be combined")
    if permission is not None and permission.upper() not in PERMISSIONS:
        raise UsageError(f"--permission {permission!r} is unknown", hint="use allow or deny")
    kind, name, pattern = parse_resource(resource or covering or "") if resource or covering else (None, None, None)
    if covering is not None and (name is None or pattern == "PREFIXED"):
        raise UsageError(
            f"--covering {covering!r} is not a single resource", hint='use a name, e.g. --covering "topic orders"'
        )
    return AclFilter(
        resource_type=kind,
        resource_name=name,
        pattern_type=pattern,
        covering=covering is not None,
        principal=parse_principal(principal) if principal is not None else None,
        host=broker_host(host) if host is not None else None,
        operation=parse_operation(operation) if operation is not None else None,
        permission_type=permission.upper() if permission is not None else None,
    )


class _WordReader:
    """The words of a sentence in order. Errors report the position."""

    def __init__(self, text: str) -> None:
        self.text = text
        if len(text) > MAX_CHARACTERS:
            raise UsageError(f"the ACL has {len(text):,} characters; the maximum is {MAX_CHARACTERS:,}")
        self._commas: set[int] = set()  # indexes of tokens that follow a comma
        self.tokens = self._split()
        self._next = 0

    def _split(self) -> list[_Word]:
        tokens: list[_Word] = []
        at = 0
        while at < len(self.text):
            char = self.text[at]
            if char.isspace():
                at += 1
            elif char == ",":
                if not tokens or len(tokens) in self._commas:
                    self.fail(at, "a comma must separate operations")
                self._commas.add(len(tokens))
                at += 1
            else:
                token, at = self._token(at)
                tokens.append(token)
        return tokens

    def _token(self, at: int) -> tuple[_Word, int]:
        if self.text[at] != '"':
            match = _BARE.match(self.text, at)
            assert match
            word = match[0]
            if self.text[match.end() : match.end() + 1] == '"':
                self.fail(match.end(), "quote inside a word", _QUOTING_HINT)
            star = word.endswith("*") and word != WILDCARD
            return _Word(word[:-1] if star else word, star, quoted=False, at=at), match.end()
        match = _QUOTED.match(self.text, at)
        if match is None:
            self.fail(at, "missing closing quote")
        try:
            text = json.loads(match[0], strict=False)
        except json.JSONDecodeError as exc:
            self.fail(at, f"invalid quoted text: {exc.msg}")
        end = match.end()
        star = self.text[end : end + 1] == WILDCARD
        end += star
        if end < len(self.text) and not (self.text[end].isspace() or self.text[end] == ","):
            self.fail(end, "missing space after the closing quote")
        return _Word(text, star, quoted=True, at=at), end

    def fail(self, at: int, problem: str, advice: str | None = None) -> NoReturn:
        """Raise UsageError for a position."""
        raise UsageError(
            f"invalid ACL at character {at + 1}: {problem}",
            hint=f"{self.text}\n{' ' * at}^" + (f"\n{advice}" if advice else ""),
            details={"position": at + 1, "expression": self.text},
        )

    def take(self, expected: str) -> _Word:
        """Return the next word. expected: named in the error if the text ends too early."""
        if self._next >= len(self.tokens):
            self.fail(len(self.text), f"{expected} is missing")
        if self._next in self._commas:
            self.fail(self.tokens[self._next].at, f"expected {expected}, without a comma before it", _QUOTING_HINT)
        self._next += 1
        return self.tokens[self._next - 1]

    def take_list(self, expected: str) -> list[_Word]:
        """Return the next word and those joined to it by commas."""
        tokens = [self.take(expected)]
        while self._next in self._commas:
            self._commas.discard(self._next)
            tokens.append(self.take(expected))
        return tokens

    def one_of(self, expected: str, allowed: dict[str, str]) -> str:
        token = self.take(expected)
        return self.match_keyword(token, expected, allowed)

    def match_keyword(self, token: _Word, expected: str, allowed: dict[str, str]) -> str:
        word = token.word.lower().replace("_", "-")
        if token.quoted or word not in allowed:
            advice = did_you_mean(word, allowed) or f"use one of {', '.join(allowed)}"
            if self._next > 1:  # earlier words may have been the beginning of a name
                advice += f"\n{_QUOTING_HINT}"
            self.fail(token.at, f"expected {expected}, not {token.word!r}", advice)
        return allowed[word]

    def accept_keyword(self, word: str) -> bool:
        """Consume the next word if it is this keyword; return True if so."""
        if self._next < len(self.tokens) and self._next not in self._commas:
            token = self.tokens[self._next]
            if not token.quoted and token.word.lower() == word:
                self._next += 1
                return True
        return False

    def end(self) -> None:
        if self._next < len(self.tokens):
            token = self.tokens[self._next]
            self.fail(token.at, f'expected "from HOST" or the end, not {token.word!r}', _QUOTING_HINT)
        if self._next in self._commas:
            self.fail(len(self.text), "nothing follows the comma")


def _principal(reader: _WordReader) -> str:
    token = reader.take("a principal")
    if token.star and not token.quoted and token.text.endswith(":"):  # Group:*
        return parse_principal(token.word)
    if token.star:
        reader.fail(
            token.at, "a principal cannot be a pattern", "use one name, or * for everyone; quote a name that ends in *"
        )
    if token.quoted and token.text == WILDCARD:
        reader.fail(token.at, "Kafka treats a principal named * as everyone", "write it without quotes")
    try:
        return parse_principal(token.text)
    except UsageError as exc:
        reader.fail(token.at, exc.message, exc.hint)


def _operations(reader: _WordReader) -> list[tuple[_Word, str]]:
    allowed = {**OPERATIONS_BY_KEYWORD, **{role: role for role in _ROLES}}
    return [(token, reader.match_keyword(token, "an operation", allowed)) for token in reader.take_list("an operation")]


def _expanded(reader: _WordReader, token: _Word, word: str, resource_type: str, *, strict: bool) -> tuple[str, ...]:
    """Return the operations that a word means for a resource type."""
    kind = keyword(resource_type)
    if word in _ROLES:
        if resource_type not in _ROLES[word]:
            kinds = " or ".join(keyword(name) for name in _ROLES[word])
            reader.fail(token.at, f'"{word}" applies to a {kinds}, not to a {kind}')
        return _ROLES[word][resource_type]
    if strict and word != "ALL" and word not in SUPPORTED[resource_type]:
        allowed = ", ".join(map(keyword, (*SUPPORTED[resource_type], "ALL")))
        reader.fail(token.at, f'"{keyword(word)}" is not an operation on a {kind}', f"use one of {allowed}")
    return (word,)


def _resource(reader: _WordReader) -> tuple[str, str, str]:
    kind = reader.one_of("a resource", KINDS_BY_KEYWORD)
    if kind == "CLUSTER":
        return kind, CLUSTER_NAME, "LITERAL"
    token = reader.take(f"the name of a {keyword(kind)}")
    if token.quoted and token.text == WILDCARD and not token.star:
        reader.fail(token.at, "Kafka treats a literal * as all resources of the type", "write it without quotes")
    if not token.text:
        reader.fail(token.at, "the name is empty")
    return kind, token.text, "PREFIXED" if token.star else "LITERAL"


def _host(reader: _WordReader, *, strict: bool) -> str:
    token = reader.take("an IP address")
    if strict and token.word != WILDCARD:
        try:
            ipaddress.ip_address(token.word)
        except ValueError:
            reader.fail(
                token.at,
                f"{token.word!r} is not an IP address",
                "use an address; brokers do not match host names or networks",
            )
        return broker_host(token.word)
    return token.word
