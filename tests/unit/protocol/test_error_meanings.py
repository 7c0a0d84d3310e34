"""Error codes and API keys: names against Kafka, classes and exit codes."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import kctl
from kctl.errors import (
    AlreadyExists,
    Busy,
    ExitCode,
    KctlError,
    NotAuthorized,
    NotFound,
    NotSupported,
    OperationFailed,
    OutcomeUnknown,
    Refused,
)
from kctl.protocol.codes import ApiKey, ErrorCode
from kctl.protocol.error_meanings import MEANINGS, RETRIABLE, error_for, error_name

# Errors.values() and ApiKeys.values() of Kafka 4.4.0: kind, code, name, and for errors whether they are retriable.
RECORDED = [
    line.split("\t")
    for line in (Path(__file__).parents[2] / "data" / "protocol_codes.tsv").read_text(encoding="utf-8").splitlines()
]
PACKAGE = Path(kctl.__file__).resolve().parent


def test_codes_and_names_are_kafkas() -> None:
    assert {code.name: code.value for code in ErrorCode} == {r[2]: int(r[1]) for r in RECORDED if r[0] == "error"}
    assert {key.name: key.value for key in ApiKey} == {r[2]: int(r[1]) for r in RECORDED if r[0] == "api"}
    assert {code.name for code in RETRIABLE} == {r[2] for r in RECORDED if r[0] == "error" and r[3] == "true"}
    assert set(MEANINGS) == set(ErrorCode)


def test_codes_have_names_everywhere() -> None:
    """No other module defines a code or compares one with a number."""
    files = [path for name in (".", "commands", "spark") for path in (PACKAGE / name).resolve().rglob("*.py")]
    assert len(files) > 700
    bare = [
        f"{path}: {ast.unparse(node)}"
        for path in files
        if path.name != "codes.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if _is_bare(node)
    ]
    assert bare == []


def _is_bare(node: ast.AST) -> bool:
    if isinstance(node, ast.Assign):
        targets = [each for target in node.targets for each in ast.walk(target) if isinstance(each, ast.Name)]
        names = {each.id.strip("_") for each in targets} & set(ErrorCode.__members__)
        return any(ErrorCode[name].value in _numbers(node.value) for name in names)
    if isinstance(node, ast.Compare) and ast.unparse(node.left).endswith("error_code"):
        return any(number != 0 for right in node.comparators for number in _numbers(right))
    return False


def _numbers(node: ast.AST) -> set[int]:
    """The integers in an expression; a negative one is an operator and a number in the tree."""
    return {
        int(ast.unparse(each))
        for each in ast.walk(node)
        if isinstance(each, (ast.Constant, ast.UnaryOp)) and re.fullmatch(r"-?\d+", ast.unparse(each))
    }


@pytest.mark.parametrize(
    ("code", "cls", "exit_code"),
    [
        (3, NotFound, 4),
        (69, NotFound, 4),
        (36, AlreadyExists, 4),
        (29, NotAuthorized, 4),
        (30, NotAuthorized, 4),
        (31, NotAuthorized, 4),
        (35, NotSupported, 4),
        (38, Refused, 4),
        (40, Refused, 4),
        (44, Refused, 4),
        (68, Refused, 4),
        (60, Busy, 4),
        (7, OutcomeUnknown, 5),
        (20, OperationFailed, 5),  # appended already
        (-1, OperationFailed, 5),
        (56, OperationFailed, 5),
        (9999, OperationFailed, 5),
    ],
)
def test_classes(code: int, cls: type[KctlError], exit_code: int) -> None:
    error = error_for(code, None, subject="topic 'x'")
    assert type(error) is cls
    assert error.exit_code == ExitCode(exit_code)
    assert error.message.startswith("topic 'x': ")
    assert error_name(code) in error.message
    assert error.details["kafka_error_code"] == code


def test_what_the_broker_says_comes_first() -> None:
    error = error_for(40, "Invalid value x\n for retention.ms.", subject="topic 'x'")
    assert error.message == "topic 'x': Invalid value x for retention.ms (INVALID_CONFIG)"


def test_zero_is_no_error() -> None:
    with pytest.raises(ValueError, match="no error"):
        error_for(0, None, subject="x")


def test_a_brokers_own_objects_are_not_shown() -> None:
    said = "Request Request(processor=1, session=kafka.network.Session@5248dcf9) is not authorized."
    error = error_for(31, said, subject="reassignments")
    assert error.message == "reassignments: not authorized for the cluster (CLUSTER_AUTHORIZATION_FAILED)"


@pytest.mark.parametrize(
    ("code", "said", "text"),
    [
        (29, "Topic authorization failed.", "not authorized for the topic"),
        (31, "Cluster authorization failed.", "not authorized for the cluster"),
        (53, "Transactional Id authorization failed.", "not authorized for the transactional id"),
        (29, None, "not authorized for the topic"),
        (29, "Not authorized to access topics: [a]", "Not authorized to access topics: [a]"),
    ],
)
def test_what_is_denied_is_said_in_one_way(code: int, said: str | None, text: str) -> None:
    error = error_for(code, said, subject="x")
    assert error.message == f"x: {text} ({error_name(code)})"
