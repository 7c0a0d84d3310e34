"""kill -9 of kctl at each write of a run's journal, then `resume`: always the same end, and nothing twice."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kctl.playbook.run.run_journal import EntryType
from kctl_testing import Kctl, Result, TestCluster
from playbook_real import NOTHING, REST, WHOLE, Book, book


@pytest.fixture
def real(kctl: Kctl, cluster: TestCluster, tmp_path: Path) -> Iterator[Book]:
    with book(kctl, cluster, tmp_path, "engine-killed") as made:
        yield made


def _resumed(real: Book) -> tuple[Result, str | None]:
    """The run gone on with; the step that was in doubt, which is then taken for done or done again by what is there."""
    done = real.resume()
    if done.code != 4 or "may have run" not in done.err:
        return done, None
    (unsure,) = json.loads(real.resume("-o", "json").err)["steps"]
    acted = real.there()["records"] > 0 if unsure == "in/load" else real.told() != []
    return real.resume("--skip" if acted else "--redo", unsure), unsure


def _is_whole(real: Book, said: Any) -> None:
    assert real.there() == WHOLE, said
    assert real.told() == ["told"], said


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("entry", list(EntryType))
def test_killed_at_each_kind_of_entry(real: Book, entry: EntryType, moment: str) -> None:
    if entry is EntryType.RUN_RESUMED:
        assert real.run(killed=f"after,{EntryType.STEP_BEGAN.value},2").code == -signal.SIGKILL
        died = real.resume(killed=f"{moment},{entry.value},1")
    else:
        died = real.run(killed=f"{moment},{entry.value},1")
    assert died.code == -signal.SIGKILL, f"{entry} was not reached\n{died}"
    if (entry, moment) == (EntryType.RUN_BEGAN, "before"):  # there is no run yet
        assert real.there() == NOTHING
        assert real.resume().code == 4
        done = real.run()
    else:
        (row,) = real.kctl.json("playbook", "status")
        assert row["state"] == ("complete" if (entry, moment) == (EntryType.RUN_ENDED, "after") else "stopped")
        done, _ = _resumed(real)
    if (entry, moment) == (EntryType.RUN_ENDED, "after"):
        assert (done.code, "is complete" in done.err) == (4, True), str(done)
    else:
        assert done.code == 0, f"{died}\n{done}"
    _is_whole(real, f"{died}\n{done}")


@pytest.mark.long
@pytest.mark.timeout(600)
def test_killed_at_each_write(kctl: Kctl, cluster: TestCluster, tmp_path: Path) -> None:
    """As many as the journal of a whole run has. What was in doubt is looked at, as an operator would."""
    doubts = set()
    number, writes = 0, 1
    while number < writes:
        number += 1
        for moment in ("before", "after"):
            folder = tmp_path / f"{number}-{moment}"
            folder.mkdir()
            with book(kctl, cluster, folder, f"engine-write-{number}-{moment}") as real:
                died = real.run(killed=f"{moment},*,{number}")
                assert died.code == -signal.SIGKILL, f"write {number}\n{died}"
                if (number, moment) == (1, "before"):
                    assert real.run().code == 0
                    writes = len(real.journals()[-1].read_text().splitlines())
                else:
                    done, unsure = _resumed(real)
                    doubts |= {unsure} - {None}
                    complete = (number, moment) == (writes, "after")
                    assert done.code == (4 if complete else 0), f"write {number}\n{died}\n{done}"
                _is_whole(real, f"{moment} write {number}\n{died}")
    assert writes > 15
    assert doubts == set(REST)
