"""ACLs in words, read and written: «allow alice read topic orders*», «deny bob all cluster from 10.0.0.1».

    ACL        = ("allow" | "deny") PRINCIPAL OPERATION {"," OPERATION} RESOURCE ["from" HOST]
    PRINCIPAL  = "*" | NAME | TYPE ":" NAME                 a NAME without a colon is User:NAME, "*" is User:*
    OPERATION  = "read" | "write" | … | "all" | "produce" | "consume"
    RESOURCE   = "cluster" | KIND PATTERN
    KIND       = "topic" | "group" | "transactional-id" | "delegation-token" | "user"
    PATTERN    = "*" | NAME | NAME "*"                      every one, exactly this one, all that begin so
    HOST       = an IP address | "*"

Words are separated by spaces. A name with spaces, quotes, commas or control characters, or one that itself ends in *,
stands in double quotes, with JSON's escapes; a * behind the quotes still means a prefix.
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
    EVERYBODY,
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

# What kafka-acls --producer and --consumer add (kafka.admin.AclCommand).
_ROLES = {
    "produce": {"TOPIC": ("WRITE", "CREATE", "DESCRIBE"), "TRANSACTIONAL_ID": ("WRITE", "DESCRIBE")},
    "consume": {"TOPIC": ("READ", "DESCRIBE"), "GROUP": ("READ",)},
}
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BARE = re.compile(r'[^\s",]+')
_PLAIN = re.compile(rf'[^\s",\\{UNSAFE}]+')
MAX_CHARACTERS = 10_000
_IN_QUOTES = 'a name with commas or blanks stands in double quotes, all of it: "User:CN=alice,O=acme"'


@dataclass(frozen=True)
class _Token:
    """A word. star: a * stands behind it (a word that is nothing but * has none). at: where it begins, from 0."""

    text: str
    star: bool
    quoted: bool
    at: int

    @property
    def word(self) -> str:
        """As it was written, for keywords."""
        return self.text + "*" * self.star


def kind_word(resource_type: str) -> str:
    """TRANSACTIONAL_ID → «transactional-id»."""
    return resource_type.lower().replace("_", "-")


KIND_WORDS = {kind_word(name): name for name in RESOURCE_TYPES}
OPERATION_WORDS = {kind_word(name): name for name in OPERATIONS}


# --- writing --------------------------------------------------------------------------------------------------------


def acl_words(acl: Acl) -> str:
    """The ACL as `parse_acls` reads it."""
    words = [
        acl.permission_type.lower(),
        principal_words(acl.principal),
        kind_word(acl.operation),
        resource_words(acl.resource_type, acl.resource_name, acl.pattern_type),
    ]
    return " ".join(words if acl.host == WILDCARD else [*words, "from", quoted_name(acl.host)])


def principal_words(principal: str) -> str:
    """«alice» of User:alice; the type is written where it is another or the name has a colon."""
    kind, colon, name = principal.partition(":")
    if principal == EVERYBODY:
        return WILDCARD
    if colon and kind == "User" and name.strip() and ":" not in name:
        return quoted_name(name)
    return quoted_name(principal)


def resource_words(resource_type: str, name: str, pattern_type: str) -> str:
    """«topic orders*»; «cluster» has no name."""
    if resource_type == "CLUSTER" and name == CLUSTER_NAME and pattern_type == "LITERAL":
        return "cluster"
    if pattern_type == "LITERAL" and name == WILDCARD:
        return f"{kind_word(resource_type)} *"
    return f"{kind_word(resource_type)} {quoted_name(name)}{'*' if pattern_type == 'PREFIXED' else ''}"


def quoted_name(text: str) -> str:
    """In quotes where it would be read as something else. A terminal is shown all of it as it is (`printable`)."""
    if _PLAIN.fullmatch(text) and not text.endswith("*"):
        return text
    return printable_json(json.dumps(text, ensure_ascii=False))


# --- reading --------------------------------------------------------------------------------------------------------


def expressions(words: Sequence[str]) -> list[str]:
    """Arguments of a command line as expressions: each is one, unless the words of one are given apart."""
    if len(words) > 1 and words[0].lower() in {"allow", "deny"}:
        return [" ".join(_requoted(word, principal=place == 1) for place, word in enumerate(words))]
    return list(words)


def _requoted(word: str, *, principal: bool) -> str:
    """A word that a shell has freed from its quotes, with them; commas stand between operations too."""
    needs = any(char.isspace() for char in word) or (principal and "," in word)
    return json.dumps(word, ensure_ascii=False) if needs and '"' not in word else word


def parse_acls(text: str, *, strict: bool = True) -> list[Acl]:
    """The ACLs of an expression, one for each operation.

    strict: also that the operations make sense for the resource and the host is an address, which is wanted of new
    ACLs and not of those that are to be removed; the host is then as brokers write it. Raises UsageError with the
    position.
    """
    reader = _Reader(text)
    permission = reader.one_of("«allow» or «deny»", {name.lower(): name for name in PERMISSIONS})
    principal = _principal(reader)
    operations = _operations(reader)
    resource_type, name, pattern = _resource(reader)
    host = _host(reader, strict=strict) if reader.keyword("from") else WILDCARD
    reader.end()
    found: dict[Acl, None] = {}
    for token, word in operations:
        for operation in _expanded(reader, token, word, resource_type, strict=strict):
            found[Acl(resource_type, name, pattern, principal, permission, operation, host)] = None
    return list(found)


def parse_all(texts: Iterable[str], *, strict: bool = True) -> list[Acl]:
    """The ACLs of several expressions, each once."""
    return list(dict.fromkeys(acl for text in texts for acl in parse_acls(text, strict=strict)))


def parse_principal(text: str) -> str:
    """«alice» or «User:alice» → «User:alice». Raises UsageError."""
    if not text.strip():
        raise UsageError("a principal has a name", hint="for example alice, User:alice or *")
    if text == WILDCARD:
        return EVERYBODY
    kind, colon, name = text.partition(":")
    if colon and not (kind and name):
        raise UsageError(f"{text!r} is no principal", hint="a principal is TYPE:NAME, for example User:alice")
    return text if colon else f"User:{text}"


def parse_resource(text: str) -> tuple[str, str | None, str | None]:
    """«topic», «topic orders», «topic orders*» → type, name and pattern type; without a name: all of the type."""
    reader = _Reader(text)
    if len(reader.tokens) == 1 and (kind := KIND_WORDS.get(reader.tokens[0].word.lower().replace("_", "-"))):
        return kind, None, None
    found = _resource(reader)
    reader.end()
    return found


def broker_host(text: str) -> str:
    """An address as brokers write and compare it (InetAddress.getHostAddress): «::1» → 0:0:0:0:0:0:0:1, and one of IPv4
    within IPv6 as IPv4. What is no address stays as it is."""
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
    """«read» → READ. Raises UsageError."""
    found = OPERATION_WORDS.get(text.lower().replace("_", "-"))
    if found is None:
        near = did_you_mean(text.lower(), OPERATION_WORDS)
        raise UsageError(f"{text!r} is no operation", hint=near or f"one of {', '.join(OPERATION_WORDS)}")
    return found


def parse_filter(
    *, principal: str | None, resource: str | None, covering: str | None, operation: str | None,
    permission: str | None, host: str | None,
) -> AclFilter:  # fmt: skip
    """The filter that a command's options say. Raises UsageError."""
    if resource is not None and covering is not None:
        raise UsageError("--resource and --covering exclude each other")
    if permission is not None and permission.upper() not in PERMISSIONS:
        raise UsageError(f"--permission {permission!r} is unknown", hint="allow or deny")
    kind, name, pattern = parse_resource(resource or covering or "") if resource or covering else (None, None, None)
    if covering is not None and (name is None or pattern == "PREFIXED"):
        raise UsageError(f"--covering {covering!r} is no single resource", hint='for example --covering "topic orders"')
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


class _Reader:
    """The words of an expression, one after the other; errors name the place."""

    def __init__(self, text: str) -> None:
        self.text = text
        if len(text) > MAX_CHARACTERS:
            raise UsageError(f"an ACL in words has at most {MAX_CHARACTERS:,} characters; this one has {len(text):,}")
        self._commas: set[int] = set()  # positions in tokens before which a comma stands
        self.tokens = self._split()
        self._next = 0

    def _split(self) -> list[_Token]:
        tokens: list[_Token] = []
        at = 0
        while at < len(self.text):
            char = self.text[at]
            if char.isspace():
                at += 1
            elif char == ",":
                if not tokens or len(tokens) in self._commas:
                    self.fail(at, "a comma separates operations")
                self._commas.add(len(tokens))
                at += 1
            else:
                token, at = self._token(at)
                tokens.append(token)
        return tokens

    def _token(self, at: int) -> tuple[_Token, int]:
        if self.text[at] != '"':
            match = _BARE.match(self.text, at)
            assert match
            word = match[0]
            if self.text[match.end() : match.end() + 1] == '"':
                self.fail(match.end(), "a quote within a word", _IN_QUOTES)
            star = word.endswith("*") and word != WILDCARD
            return _Token(word[:-1] if star else word, star, quoted=False, at=at), match.end()
        match = _QUOTED.match(self.text, at)
        if match is None:
            self.fail(at, "the quotes are not closed")
        try:
            text = json.loads(match[0], strict=False)
        except json.JSONDecodeError as exc:
            self.fail(at, f"not understood within quotes: {exc.msg}")
        end = match.end()
        star = self.text[end : end + 1] == WILDCARD
        end += star
        if end < len(self.text) and not (self.text[end].isspace() or self.text[end] == ","):
            self.fail(end, "a space is missing behind the quotes")
        return _Token(text, star, quoted=True, at=at), end

    def fail(self, at: int, problem: str, advice: str | None = None) -> NoReturn:
        """Raise the error of a place."""
        raise UsageError(
            f"not an ACL in words, at character {at + 1}: {problem}",
            hint=f"{self.text}\n{' ' * at}^" + (f"\n{advice}" if advice else ""),
            details={"position": at + 1, "expression": self.text},
        )

    def take(self, wanted: str) -> _Token:
        """The next word. wanted: what should come, for the error of an end that comes too early."""
        if self._next >= len(self.tokens):
            self.fail(len(self.text), f"{wanted} is missing")
        if self._next in self._commas:
            self.fail(self.tokens[self._next].at, f"expected {wanted} here, without a comma before it", _IN_QUOTES)
        self._next += 1
        return self.tokens[self._next - 1]

    def take_list(self, wanted: str) -> list[_Token]:
        """The next word, and those that commas join to it."""
        found = [self.take(wanted)]
        while self._next in self._commas:
            self._commas.discard(self._next)
            found.append(self.take(wanted))
        return found

    def one_of(self, wanted: str, known: dict[str, str]) -> str:
        token = self.take(wanted)
        return self.known(token, wanted, known)

    def known(self, token: _Token, wanted: str, known: dict[str, str]) -> str:
        word = token.word.lower().replace("_", "-")
        if token.quoted or word not in known:
            advice = did_you_mean(word, known) or f"one of {', '.join(known)}"
            if self._next > 1:  # what was read before may have been the beginning of a name
                advice += f"\n{_IN_QUOTES}"
            self.fail(token.at, f"expected {wanted}, not {token.word!r}", advice)
        return known[word]

    def keyword(self, word: str) -> bool:
        """Whether the next word is this one; then it is taken."""
        if self._next < len(self.tokens) and self._next not in self._commas:
            token = self.tokens[self._next]
            if not token.quoted and token.word.lower() == word:
                self._next += 1
                return True
        return False

    def end(self) -> None:
        if self._next < len(self.tokens):
            token = self.tokens[self._next]
            self.fail(token.at, f'expected the end, or "from HOST", not {token.word!r}', _IN_QUOTES)
        if self._next in self._commas:
            self.fail(len(self.text), "nothing follows the comma")


def _principal(reader: _Reader) -> str:
    token = reader.take("a principal")
    if token.star and not token.quoted and token.text.endswith(":"):  # Group:*
        return parse_principal(token.word)
    if token.star:
        reader.fail(
            token.at, "a principal has no pattern", "one name, or * for everybody; a name that ends in * in quotes"
        )
    if token.quoted and token.text == WILDCARD:
        reader.fail(token.at, "Kafka takes a principal of the name * for everybody", "write it without quotes")
    try:
        return parse_principal(token.text)
    except UsageError as exc:
        reader.fail(token.at, exc.message, exc.hint)


def _operations(reader: _Reader) -> list[tuple[_Token, str]]:
    known = {**OPERATION_WORDS, **{role: role for role in _ROLES}}
    return [(token, reader.known(token, "an operation", known)) for token in reader.take_list("an operation")]


def _expanded(reader: _Reader, token: _Token, word: str, resource_type: str, *, strict: bool) -> tuple[str, ...]:
    """The operations that a word stands for on a type of resource."""
    kind = kind_word(resource_type)
    if word in _ROLES:
        if resource_type not in _ROLES[word]:
            where = " or ".join(kind_word(name) for name in _ROLES[word])
            reader.fail(token.at, f"«{word}» is of a {where}, not of a {kind}")
        return _ROLES[word][resource_type]
    if strict and word != "ALL" and word not in SUPPORTED[resource_type]:
        known = ", ".join(map(kind_word, (*SUPPORTED[resource_type], "ALL")))
        reader.fail(token.at, f"no operation on a {kind} is «{kind_word(word)}»", f"one of {known}")
    return (word,)


def _resource(reader: _Reader) -> tuple[str, str, str]:
    kind = reader.one_of("a resource", KIND_WORDS)
    if kind == "CLUSTER":
        return kind, CLUSTER_NAME, "LITERAL"
    token = reader.take(f"the name of a {kind_word(kind)}")
    if token.quoted and token.text == WILDCARD and not token.star:
        reader.fail(token.at, "Kafka takes a literal * for every resource of the type", "write it without quotes")
    if not token.text:
        reader.fail(token.at, "the name is empty")
    return kind, token.text, "PREFIXED" if token.star else "LITERAL"


def _host(reader: _Reader, *, strict: bool) -> str:
    token = reader.take("an IP address")
    if strict and token.word != WILDCARD:
        try:
            ipaddress.ip_address(token.word)
        except ValueError:
            reader.fail(
                token.at, f"{token.word!r} is no IP address", "brokers compare addresses, not names or networks"
            )
        return broker_host(token.word)
    return token.word
