"""The script for spark-submit: kctl's command line, on the driver that spark-submit has started.

spark-submit --master yarn --archives kctl.tgz#kctlenv … …/kctl/spark/submit.py spark lag --store hdfs:///…
"""

from __future__ import annotations

import sys
from pathlib import Path


def _submitted() -> None:
    # Python puts this folder first on its path, where modules would hide others of the same name.
    here = Path(__file__).resolve().parent
    sys.path[:] = [entry for entry in sys.path if not entry or Path(entry).resolve() != here]
    from kctl.__main__ import run  # with spark-submit's own path, where its pyspark is
    from kctl.spark.submitted import connect

    connect().close()  # the master must be known before the command line is parsed
    run(sys.argv[1:])


if __name__ == "__main__":
    _submitted()
