"""The console script, and the library's only bridge to kctl.commands."""

from __future__ import annotations

import sys


def main() -> int:
    """Run kctl on sys.argv; the exit code. `kctl --version` is answered before Typer is imported."""
    argv = sys.argv[1:]
    if argv == ["--version"]:
        from kctl import __version__

        sys.stdout.write(f"kctl {__version__}\n")
        return 0
    try:
        from kctl.commands.app import main as run

        return run(argv)
    except KeyboardInterrupt:  # while importing, before app.main could say so
        sys.stderr.write("\ninterrupted\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
