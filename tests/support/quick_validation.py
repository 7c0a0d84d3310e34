"""kctl_killed.py for `kctl validate`, with short periods of normal writes: tests check its steps, not its figures.

python quick_validation.py before|after STEP ARGUMENT…
"""

from __future__ import annotations

import sys

import kctl_killed
from kctl.validate import run

if __name__ == "__main__":
    setattr(run, "_STEADY_S", 0.2)  # noqa: B010 - a private name
    sys.exit(kctl_killed.main())
