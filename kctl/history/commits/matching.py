"""When an offset that a snapshot saw was committed, by the commits that __consumer_offsets tells of. Pure.

A pass reads offsets some moments after its time, and clocks of brokers and of the collector differ. So an offset that
the commits at that time do not explain is looked for in those that follow within `slack_ms`. What none explains (its
commit was compacted, or belongs to another time) is not known: lag.window then goes by when it was first seen.

Of a group that commits the same offset again and again the last commit before the snapshot counts: it lived until then.
"""

from __future__ import annotations

SLACK_MS = 10_000
