"""The picture of docs/report.md: an hour of a shop's cluster, as `kctl spark report --html` shows it.

Run: python tests/support/report_picture.py docs/report.png
"""

from __future__ import annotations

import math
import sys
import tempfile
from datetime import datetime, timezone
from pathlib import Path

from headless_browser import Browser
from kctl.history.lag.plan import LagRequest, plan_span
from kctl.history.report.build import report_of
from kctl.history.report.html_page import html_page
from kctl.history.snapshots import schema
from kctl.history.snapshots.collect import Pass
from kctl.history.snapshots.commit import put_pass
from kctl.history.snapshots.layout import HOUR_MS
from kctl.history.snapshots.store import create_store
from kctl.lag.selection import EVERY

START_MS, MINUTE_MS, MINUTES = 1_790_000_000_000 // HOUR_MS * HOUR_MS, 60_000, 60
# Partitions, messages a minute in each, retention in hours.
TOPICS = {"orders": (6, 900, 24), "payments": (3, 400, 168), "clicks": (12, 2400, 6), "audit": (2, 60, 720)}
GROUPS = {
    "billing": "payments",
    "fraud-detection": "payments",
    "search-index": "orders",
    "shipping": "orders",
    "recommendations": "clicks",
    "sessions": "clicks",
    "compliance": "audit",
}
WIDTH, HEIGHT = 1260, 1340


def behind(group: str, minute: int) -> int:
    """Return the number of unread messages of a group in each partition."""
    rate = TOPICS[GROUPS[group]][1]
    if group == "search-index" and minute > 36:  # stopped
        return behind(group, 36) + rate * (minute - 36)
    if group == "fraud-detection":  # too slow
        return rate * minute // 4
    swing = round(rate * (1.2 + math.sin(minute / 3 + len(group))) / 6)
    if group == "recommendations":  # was stopped, and catches up
        return swing + max(0, 14 * rate - abs(minute - 27) * rate) // 3
    return 0 if minute % 2 else swing // 4


def a_pass(minute: int) -> Pass:
    """Return the rows of a minute."""
    found = Pass(rows={table: [] for table in schema.TABLES if table != schema.PASSES})
    used = dict.fromkeys((1, 2, 3), 0)
    for topic, (partitions, rate, hours) in TOPICS.items():
        end = rate * (24 * 60 + minute)
        found.rows[schema.CONFIGS].append((topic, "delete", hours * HOUR_MS, -1, 10**9, None, None, None, None, None))
        for partition in range(partitions):
            oldest = START_MS + minute * MINUTE_MS - min(hours, 24) * HOUR_MS
            found.rows[schema.LOGS].append((topic, partition, "id", 1 + partition % 3, 3, 0, end, end, oldest))
            for broker in {1 + partition % 3, 1 + (partition + 1) % 3}:
                found.rows[schema.REPLICAS].append((broker, "/var/kafka", topic, partition, end * 1500, 0, False))
                used[broker] += end * 1500
    for group, topic in GROUPS.items():
        partitions, rate, _ = TOPICS[topic]
        there = 0 if group == "search-index" and minute > 36 else 3
        found.rows[schema.GROUPS].append((group, "Stable" if there else "Empty", "classic", "consumer", there, 1))
        for partition in range(partitions):
            end = rate * (24 * 60 + minute)
            committed = max(end - behind(group, minute), 0)
            found.rows[schema.COMMITS].append((group, topic, partition, committed, 0, end, 3, "id", False))
            if there:
                client = f"{group}-{partition % 3}"
                found.rows[schema.OWNERS].append((group, topic, partition, "m", client, "/10.0.3.7"))
    for broker, total in {1: 400 * 10**9, 2: 68 * 10**9, 3: 400 * 10**9}.items():
        found.rows[schema.LOG_DIRS].append((broker, "/var/kafka", total, total - used[broker], None))
    return found


def main(file: Path) -> None:
    """Write the picture."""
    with tempfile.TemporaryDirectory() as folder:
        store = create_store(Path(folder, "store"), "shop-eu")
        for minute in range(MINUTES):
            at_ms = START_MS + minute * MINUTE_MS
            put_pass(store, at_ms, at_ms + 200, a_pass(minute), interval_ms=MINUTE_MS)
        plan = plan_span(store.root, START_MS, START_MS + HOUR_MS, LagRequest(EVERY, EVERY))
        page = Path(folder, "report.html")
        page.write_text(html_page(report_of(plan, made_at=datetime.fromtimestamp(START_MS / 1000, timezone.utc))))
        with Browser() as browser, browser.page(page, width=WIDTH, height=HEIGHT) as shown:
            shown.screenshot(file)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
