"""The console script. The only library module that imports kctl.commands."""

from __future__ import annotations

import sys

from kctl.base.own_python import isolate


def main() -> int:
    """Run kctl on sys.argv, with only its own packages visible, and return the exit code."""
    try:
        isolate()
    except KeyboardInterrupt:
        return _interrupted()
    code = run(sys.argv[1:])
    if sys.flags.inspect:  # PYTHONINSPECT: Python would start an interactive session and lose the exit code
        _exit_now(code)
    return code


def run(argv: list[str]) -> int:
    """Run kctl and return the exit code. `kctl --version` does not import Typer."""
    if argv == ["--version"] and sys.stdout is not None:
        from kctl import __version__

        try:
            sys.stdout.write(f"kctl {__version__}\n")
            sys.stdout.flush()
            return 0
        except OSError:  # a full disk or a closed pipe: the regular path reports it
            pass
    try:
        from kctl.commands.app import main as run_command

        return run_command(argv)
    except ModuleNotFoundError as exc:  # while importing kctl; app.main reports later ones
        sys.stderr.write(
            f"error: {exc.name} is not installed in kctl's own environment ({sys.prefix})\n"
            "  reinstall kctl with its requirements; it does not search PYTHONPATH or the user's site-packages\n"
        )
        return 5
    except KeyboardInterrupt:  # while importing, before app.main can report it
        return _interrupted()


def _interrupted() -> int:
    sys.stderr.write("\ninterrupted\n")
    return 130


def _exit_now(code: int) -> None:
    import atexit
    import os

    atexit._run_exitfuncs()  # noqa: SLF001 - Python itself calls this at exit
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
