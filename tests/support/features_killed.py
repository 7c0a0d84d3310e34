"""Run a kctl command, and kill -9 this process when a change of feature levels is answered, before it is read back.

    python features_killed.py ARGUMENT…

Only the client's `send` is wrapped, without support in kctl.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from kctl import __main__
from kctl.protocol.client import ClusterClient


def main() -> int:
    """Return the exit code of kctl, if it changed nothing."""
    send = ClusterClient.send

    def watched(self: ClusterClient, request: Any, **options: Any) -> Any:
        answer = send(self, request, **options)
        if type(request).__name__ == "UpdateFeaturesRequest" and not request.validate_only:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    setattr(ClusterClient, "send", watched)  # noqa: B010 - mypy takes it for an assignment of another type
    return __main__.main()


if __name__ == "__main__":
    sys.exit(main())
