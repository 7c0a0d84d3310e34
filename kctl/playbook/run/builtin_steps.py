"""Run the built-in steps of a playbook. The engine runs `include`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kctl.base.secrets import Redactor
from kctl.base.units import format_duration, parse_duration_ms
from kctl.errors import ExitCode, InvalidFile, TimedOut, UsageError
from kctl.playbook.expressions.evaluation import condition, render
from kctl.playbook.expressions.json_text import value_of_json
from kctl.playbook.expressions.limits import ExpressionError
from kctl.playbook.expressions.syntax import is_expression
from kctl.playbook.model import Playbook, Step
from kctl.playbook.run.check import NO_DRY_RUN
from kctl.playbook.run.run_environment import RunEnvironment
from kctl.playbook.run.states import StepResult, StepState
from kctl.playbook.run.step_settings import StepSettings

PURE = frozenset({"assert", "set", "tell"})  # without side effects: can be repeated at no cost
NAMING = frozenset({"set", "wait"})  # their value is a mapping of variables to define
WAIT_TIMEOUT = "5m"
WAIT_EVERY = "1s"
RUN_TIMEOUT_S = 3600.0
_MIN_INTERVAL_S = 0.05  # between two evaluations, even with `every: 0s`
MAX_OUTPUT_BYTES = 1 << 20  # stored per stream of a program
MAX_LINES = 50  # of a program's stderr that are displayed
_MAX_LINE = 500  # characters of a program's last line in an error message
_CONDITIONS = {"assert": "that", "wait": "until"}


def arguments_of(step: Step, variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return the evaluated arguments of a step. Conditions and the message of an assert are returned as written.

    Raises ExpressionError.
    """
    raw = {_CONDITIONS.get(step.kind), "message" if step.kind == "assert" else None}
    return {
        str(name): value if name in raw else render(value, variables)
        for name, value in step.arguments.items()
    }  # fmt: skip


def check_argv(step: Step, arguments: Mapping[str, Any], redactor: Redactor) -> None:
    """Raise UsageError if an expression puts a secret on a command line, where other users can see it."""
    if step.kind != "run":
        return
    body, argv = step.arguments.get("argv"), arguments.get("argv")
    if not isinstance(argv, list):
        return
    for index, word in enumerate(argv):
        is_computed = is_expression(body[index] if isinstance(body, list) else body)
        if is_computed and redactor.value(word) != word:
            raise UsageError(
                f"argv[{index}] contains a secret; other users can see command lines", hint="pass it with env or stdin"
            )


def run_builtin_step(
    playbook: Playbook,
    step: Step,
    arguments: Mapping[str, Any],
    variables: Mapping[str, Any],
    settings: StepSettings,
    environment: RunEnvironment,
    *,
    check: bool,
    note: Callable[[str], None],
    refresh: Callable[[], Mapping[str, Any]],
) -> StepResult:
    """Run the step once. check: dry run. refresh: reads the registers of a wait's condition again. Raises KctlError."""
    if step.kind == "assert":
        return _assert(arguments, variables)
    if step.kind == "set":
        return StepResult(StepState.OK, dict(arguments), 0)
    if step.kind == "tell":
        return StepResult(StepState.OK, None, 0, " ".join(str(arguments["message"]).split()))
    if step.kind == "wait":
        return _wait(arguments, variables, environment, refresh, check=check)
    if step.kind == "confirm":
        if not check:
            environment.person.confirm(str(arguments["message"]))
        return StepResult(StepState.OK, None, 0)
    if check:
        return StepResult(StepState.WOULD_CHANGE, message=NO_DRY_RUN, changed=True)
    return _run(playbook, step, arguments, settings, environment, note)


def _assert(arguments: Mapping[str, Any], variables: Mapping[str, Any]) -> StepResult:
    that = arguments["that"]
    wrong = [each for each in (that if isinstance(that, list) else [that]) if not condition(each, variables)]
    if not wrong:
        return StepResult(StepState.OK, None, 0)
    message = render(arguments.get("message"), variables)
    text = str(message) if message is not None else f"not true: {'; '.join(' '.join(str(e).split()) for e in wrong)}"
    return StepResult(StepState.FAILED, None, int(ExitCode.UNHEALTHY), text)


def _wait(
    arguments: Mapping[str, Any],
    variables: Mapping[str, Any],
    environment: RunEnvironment,
    refresh: Callable[[], Mapping[str, Any]],
    *,
    check: bool,
) -> StepResult:
    until = arguments.get("until")
    if until is None:
        seconds = _seconds(arguments["duration"])
        if not check:
            environment.clock.sleep(seconds)
        return StepResult(StepState.OK, None, 0)
    text = " ".join(str(until).split())
    limit, every = _seconds(arguments.get("timeout", WAIT_TIMEOUT)), _seconds(arguments.get("every", WAIT_EVERY))
    end = environment.clock.now_s() + limit
    refreshed: Mapping[str, Any] = {}
    while not _holds(until, variables, refreshed):
        if check:
            return StepResult(StepState.UNKNOWN, message=f"{text} is not true yet; a run would wait")
        remaining_s = end - environment.clock.now_s()
        if remaining_s <= 0:
            wrong = [str(each["error"]) for each in refreshed.values() if each["error"]]
            raise TimedOut(
                f"{text} is not true after {format_duration(int(limit * 1000))}", hint="; ".join(wrong) or None
            )
        environment.clock.sleep(min(max(every, _MIN_INTERVAL_S), remaining_s))
        refreshed = {**refreshed, **refresh()}
    return StepResult(StepState.OK, dict(refreshed) or None, 0)


def _holds(until: Any, variables: Mapping[str, Any], refreshed: Mapping[str, Any]) -> bool:
    """Evaluate the condition; False if it cannot be evaluated because a register could not be refreshed."""
    try:
        return condition(until, {**variables, **refreshed})
    except ExpressionError:
        if any(each["error"] for each in refreshed.values()):
            return False
        raise


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise UsageError(f"{value!r} is not a duration", hint="e.g. 500ms, 30s or 5m")
    return parse_duration_ms(str(value)) / 1000


# --- programs ---------------------------------------------------------------------------------------------------------


def _run(
    playbook: Playbook,
    step: Step,
    arguments: Mapping[str, Any],
    settings: StepSettings,
    environment: RunEnvironment,
    note: Callable[[str], None],
) -> StepResult:
    """Run the program in its own process group, which is killed at the timeout."""
    argv = _argv(arguments["argv"])
    try:
        completed = environment.programs(
            argv,
            timeout_s=settings.timeout_s or RUN_TIMEOUT_S,
            env={**environment.program_variables, **_program_variables(arguments.get("env"))},
            cwd=_folder(playbook, arguments.get("cwd")),
            input=settings.stdin,
        )
    except TimedOut as exc:
        return StepResult(
            StepState.FAILED, None, int(exc.exit_code), exc.message, "raise `timeout` of the step", changed=True
        )
    stdout, cut = _decode_output(completed.stdout)
    stderr, _ = _decode_output(completed.stderr)
    lines = [line for line in stderr.splitlines() if line.strip()]
    if len(lines) > MAX_LINES:
        note(f"… {len(lines) - MAX_LINES:,} earlier lines")
    if lines:
        note("\n".join(lines[-MAX_LINES:]))
    value: dict[str, Any] = {"stdout": stdout, "stderr": stderr, "truncated": cut or completed.truncated}
    wrong = None
    if arguments.get("parse") == "json":
        try:
            value["json"] = value_of_json(stdout)
        except ValueError:
            value["json"], wrong = None, "the output is not valid JSON"
    if completed.returncode not in step.accept:
        last = next((line.strip() for line in reversed((stderr or stdout).splitlines()) if line.strip()), "")
        status = f"signal {-completed.returncode}" if completed.returncode < 0 else f"exit code {completed.returncode}"
        wrong = f"{argv[0]}: {status}{f': {last[:_MAX_LINE]}' if last else ''}"
    if wrong is not None:
        return StepResult(StepState.FAILED, value, int(ExitCode.FAILED), wrong, changed=True)
    return StepResult(StepState.CHANGED, value, completed.returncode, changed=True)


def _argv(value: Any) -> list[str]:
    if not isinstance(value, list) or not value:
        raise UsageError("argv must be a non-empty list of strings")
    texts = [_word(each) for each in value]
    if not texts[0]:
        raise UsageError("the first item of argv, the program, is empty")
    return texts


def _word(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)) or "\0" in str(value):
        raise UsageError(f"an argument of a program must be a string, not {value!r}")
    return str(value)


def _program_variables(value: Any) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, Mapping) or any(not name or "=" in str(name) for name in value):
        raise UsageError("env must be a mapping of names to strings")
    return {_word(name): _word(each) for name, each in value.items()}


def _folder(playbook: Playbook, folder: Any) -> Path | None:
    base = playbook.source.resolve().parent if playbook.source is not None else Path.cwd()
    if folder is None:
        return base
    path = base / Path(_word(folder)).expanduser()
    if not path.is_dir():
        raise InvalidFile(f"folder {path} does not exist")
    return path


def _decode_output(data: bytes) -> tuple[str, bool]:
    return data[:MAX_OUTPUT_BYTES].decode("utf-8", "replace"), len(data) > MAX_OUTPUT_BYTES
