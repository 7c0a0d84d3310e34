"""The line parser for the options of kctl produce."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.base.units import parse_size
from kctl.commands.produce.options import Format
from kctl.errors import UsageError

if TYPE_CHECKING:
    from kctl.records.produce.fitting import Parse
    from kctl.records.produce.outgoing import Headers, Outgoing

_SEPARATORS = ("--headers-delimiter", "--headers-separator", "--headers-key-separator")


@dataclass(frozen=True, slots=True)
class LineOptions:
    """The options for lines.

    headers_separators: after the headers, between two headers, within a header; None: lines have no headers. template,
    size: values are generated, and no lines are read. accept_missing: see TextFormat.
    """

    format: Format
    key: str | None
    key_separator: str | None
    headers: Headers
    headers_separators: tuple[str, str, str] | None
    null_marker: str | None
    timestamp_ms: int | None
    partition: int | None
    repartition: bool
    template: str | None
    size: str | None
    accept_missing: bool = False

    @property
    def is_generated(self) -> bool:
        """Return True if values are generated."""
        return self.template is not None or self.size is not None

    def check(self, *, files: bool) -> None:
        """Raise UsageError for options that cannot be combined."""
        splits = self.key_separator is not None or self.headers_separators is not None
        if self.is_generated and (files or self.format is not Format.TEXT or splits):
            raise UsageError(
                "--template and --size generate the values and read no lines", hint="remove the options for lines"
            )
        if self.format is Format.JSON and (splits or self.null_marker is not None):
            raise UsageError(
                "JSON lines contain keys, headers and nulls", hint="remove the options for separators and markers"
            )


def line_parser(options: LineOptions) -> Parse | None:
    """Return a function that makes a record from a line and its number; None if lines are values. Raises UsageError."""
    if options.is_generated:
        return _generated(options)
    if options.format is Format.JSON:
        return _json(options)
    return _text(options)


def _generated(options: LineOptions) -> Parse:
    from kctl.records.produce.outgoing import Outgoing
    from kctl.records.produce.template import random_text, template

    if options.template is not None and options.size is not None:
        raise UsageError(
            "--template and --size cannot be combined", hint="use {random:1000} in the template for random text"
        )
    size = options.size
    make_value = template(options.template or "") if size is None else random_text(parse_size(size))
    make_key = template(options.key) if options.key is not None else None
    headers, timestamp_ms, partition = options.headers, options.timestamp_ms, options.partition

    def parse(_line: bytes, number: int) -> Outgoing:
        return Outgoing(make_key(number) if make_key else None, make_value(number), headers, timestamp_ms, partition)

    return parse


def _json(options: LineOptions) -> Parse:
    from kctl.records.produce.json import json_parser

    parse = json_parser(
        headers=options.headers, key=_raw(options.key), timestamp_ms=options.timestamp_ms, partition=options.partition,
        repartition=options.repartition,
    )  # fmt: skip
    return lambda line, _number: parse(line)


def _text(options: LineOptions) -> Parse | None:
    from kctl.records.lines import parse_separator
    from kctl.records.produce.text import TextFormat, check_separators, text_parser

    if options.key is not None and options.key_separator is not None:
        raise UsageError("--key and --key-separator cannot be combined")
    texts = options.headers_separators or ("\t", ",", ":")
    delimiter, between, equals = (parse_separator(text, name) for text, name in zip(texts, _SEPARATORS, strict=True))
    text_format = TextFormat(
        encoding=options.format.value,
        key_separator=None if options.key_separator is None else parse_separator(options.key_separator),
        key=_raw(options.key),
        parse_headers=options.headers_separators is not None,
        headers_delimiter=delimiter,
        headers_separator=between,
        headers_key_separator=equals,
        null_marker=_raw(options.null_marker),
        headers=options.headers,
        timestamp_ms=options.timestamp_ms,
        partition=options.partition,
        accept_missing=options.accept_missing,
    )
    check_separators(text_format)
    if text_format.plain:
        return None
    parse = text_parser(text_format)
    return lambda line, _number: parse(line)


def _raw(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-8", "surrogateescape")
