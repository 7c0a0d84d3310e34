"""Match offsets in snapshots with commits in __consumer_offsets, to find their commit times. Pure.

A pass reads offsets shortly after its time, and the clocks of brokers and of the collector differ. So if the commits up
to that time do not match an offset, the commits within the next `slack_ms` are tried. Without a match (the commit was
compacted away, or is outside the slack) the commit time is unknown: lag.window then uses the first observation.

If a group commits the same offset repeatedly, the last commit before the snapshot counts: the group was alive then.
"""

from __future__ import annotations

SLACK_MS = 10_000
