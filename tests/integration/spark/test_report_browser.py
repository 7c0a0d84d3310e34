"""The page of `kctl spark report` in a real browser: what a person sees and does, and what hostile names may not do."""

from __future__ import annotations

import dataclasses
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from headless_browser import Browser, Page
from kctl.history.report.html_page import html_page
from kctl.history.report.model import Report, State
from report_samples import HOSTILE, group_report, sample_report

pytestmark = pytest.mark.long
PHONE = 375


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as found:
        yield found


def written(folder: Path, report: Report) -> Path:
    file = folder / "report.html"
    file.write_text(html_page(report), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with hostile names, more groups than a table shows at first."""
    return written(tmp_path_factory.mktemp("page"), sample_report(150, 40))


@pytest.fixture
def page(browser: Browser, file: Path) -> Iterator[Page]:
    with browser.page(file) as found:
        yield found


def column(page: Page, table: str, title: str, *, healthy: bool | None = False) -> list[str]:
    """The texts of a table's column, from the top. healthy: of the collapsed rows; None: of all rows."""
    script = f"""(() => {{
        const tables = [...document.querySelectorAll('#{table} table')];
        const healthy = {json.dumps(healthy)};
        const part = tables.filter((t) => healthy === null || !!t.closest('details') === healthy);
        const place = (t) => [...t.querySelectorAll('th')].findIndex((th) => th.textContent === {title!r});
        return part.flatMap((t) => [...t.tBodies[0].rows].map((tr) => tr.cells[place(t)].textContent));
    }})()"""
    found: list[str] = page.run(script)
    return found


def click_title(page: Page, table: str, title: str) -> None:
    page.run(f"[...document.querySelectorAll('#{table} th button')].find((b) => b.textContent === {title!r}).click()")


def search(page: Page, table: str, text: str) -> None:
    page.run(
        f"(() => {{ const input = document.querySelector('#{table} input'); input.value = {text!r};"
        " input.dispatchEvent(new Event('input')); })()"
    )


# --- safety ---------------------------------------------------------------------------------------------------------


def test_the_page_is_drawn_without_a_complaint_and_asks_for_nothing(page: Page, file: Path) -> None:
    assert page.run("document.documentElement.dataset.drawn") == "yes"
    assert page.complaints == []
    assert page.requested == [file.as_uri()]


def test_no_name_breaks_out(page: Page) -> None:
    assert page.run("typeof window.broken") == "undefined"
    assert page.run("document.querySelectorAll('img, body svg:not(.spark), iframe, link').length") == 0
    assert page.run("document.scripts.length") == 3
    names = column(page, "groups-table", "GROUP", healthy=None)
    assert {HOSTILE[0], HOSTILE[1], HOSTILE[2], HOSTILE[5], HOSTILE[6]} <= set(names)
    assert "\\u202egnp.exe\\u2028line" in names
    labels = page.run("[...document.querySelectorAll('#lag-chart .u-label')].map((e) => e.textContent)")
    assert HOSTILE[1] in labels
    assert HOSTILE[0] in page.run("document.title")


def test_the_policy_holds_a_script_back_that_got_in(page: Page) -> None:
    page.run("document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.in = 1'}))")
    page.run("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.in = 1\">')")
    assert page.run("new Promise((done) => setTimeout(() => done(typeof window.in), 300))") == "undefined"
    assert any("Content Security Policy" in text or "contentSecurityPolicy" in text for text in page.complaints)


def test_the_policy_lets_nothing_reach_a_network(page: Page) -> None:
    asked: list[str] = []

    class Server(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(204)
            self.end_headers()

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_port}"
        page.run(f"new Image().src = '{url}/image'")
        refused = page.run(f"fetch('{url}/fetch').then(() => 'reached', () => 'refused')")
    finally:
        server.shutdown()
        server.server_close()
    assert refused == "refused"
    assert asked == []


# --- what is the matter ----------------------------------------------------------------------------------------------


def test_what_needs_somebody_comes_first_and_leads_to_its_row(page: Page) -> None:
    first = page.run("document.querySelector('main > section:not([hidden])').id")
    assert first == "findings"
    lines = (
        "[...document.querySelectorAll('#findings li')].filter((e) => e.checkVisibility()).map((e) => e.textContent)"
    )
    found = page.run(lines)
    assert len(found) == 8
    assert f"log dir {HOSTILE[1]} on broker 4 is offline: {HOSTILE[0]}" in found[0]
    assert "in 1h, 09-21 12:00" in found[1]
    assert "since 09-21 10:30 · " in found[1]
    page.run("document.querySelector('#findings .more').click()")
    assert len(page.run(lines)) == len(sample_report(150, 40).findings)
    page.run("[...document.querySelectorAll('#findings a.link')].find((b) => b.textContent.includes('0009')).click()")
    assert column(page, "groups-table", "GROUP") == ["group-0009"]
    assert page.run("document.activeElement === document.querySelector('#groups-table input')")
    page.run("document.querySelector('#findings a.link').click()")
    assert column(page, "log-dirs-table", "LOG DIR") == [HOSTILE[1]]


# --- what a person does ---------------------------------------------------------------------------------------------


def test_a_click_on_a_title_sorts_and_another_one_turns_it_round(page: Page) -> None:
    click_title(page, "groups-table", "LAG")
    down = [int(text.replace(",", "")) for text in column(page, "groups-table", "LAG")]
    assert down == sorted(down, reverse=True)
    assert page.run("document.querySelector('#groups-table [aria-sort]').ariaSort") == "descending"
    click_title(page, "groups-table", "LAG")
    up = [int(text.replace(",", "")) for text in column(page, "groups-table", "LAG")]
    assert up == sorted(up)
    assert up[0] < down[-1]  # of all rows, not only of those that were shown
    click_title(page, "groups-table", "STATUS")
    assert column(page, "groups-table", "STATUS")[0] == "ERR"
    click_title(page, "groups-table", "LOSES IN")  # what is soonest is asked for first
    assert page.run("document.querySelector('#groups-table [aria-sort]').ariaSort") == "ascending"


def test_what_is_not_known_stays_at_the_end(browser: Browser, tmp_path: Path) -> None:
    groups = [group_report("a", 5, State.WARN), group_report("b", 50, State.WARN)]
    unknown = group_report("c", 1, State.WARN)
    groups.append(dataclasses.replace(unknown, now=dataclasses.replace(unknown.now, lag=None)))
    with browser.page(written(tmp_path, dataclasses.replace(sample_report(), groups=groups))) as page:
        click_title(page, "groups-table", "LAG")
        assert column(page, "groups-table", "LAG") == ["50", "5", "–"]
        click_title(page, "groups-table", "LAG")
        assert column(page, "groups-table", "LAG") == ["5", "50", "–"]


def test_words_filter_the_table_its_chart_and_the_timeline(page: Page) -> None:
    assert len(column(page, "groups-table", "GROUP")) == 25
    assert not page.run("document.querySelector('#groups-table details').open")
    search(page, "groups-table", "GROUP-0 err")
    names = column(page, "groups-table", "GROUP")
    assert names
    assert set(column(page, "groups-table", "STATUS")) == {"ERR"}
    assert all(name.startswith("group-0") for name in names)
    labels = page.run("[...document.querySelectorAll('#lag-chart .u-label')].map((e) => e.textContent)")
    assert labels[1:] == names[:8]
    lanes = page.run("[...document.querySelectorAll('#timeline .label')].map((e) => e.textContent)")
    assert lanes[:25] == names
    assert page.run("document.querySelector('#groups-table .more').textContent") == f"show all {len(lanes)}"
    assert f"{len(lanes)} of 157" in page.run("document.querySelector('#groups-table .tools').textContent")
    search(page, "groups-table", "no such group")
    assert column(page, "groups-table", "GROUP") == []
    assert page.run("document.querySelectorAll('#lag-chart canvas').length") == 0
    search(page, "groups-table", "")
    page.run("document.querySelector('#groups-table .more').click()")
    assert len(column(page, "groups-table", "GROUP", healthy=None)) == 157
    assert page.complaints == []


def test_healthy_rows_are_collapsed_until_they_are_opened_or_found(page: Page) -> None:
    details = "document.querySelector('#groups-table details')"
    assert page.run(f"{details}.querySelector('summary').textContent") == "39 healthy groups"
    assert "OK" not in column(page, "groups-table", "STATUS")
    assert not page.run(f"{details}.open")
    assert page.run(f"{details}.querySelectorAll('.track').length") == 0
    page.run(f"{details}.querySelector('summary').click()")
    page.wait(f"{details}.querySelectorAll('.track').length === 39")
    assert page.run(f"{details}.querySelectorAll('svg.spark').length") == 39
    page.run(f"{details}.querySelector('summary').click()")
    healthy = column(page, "groups-table", "GROUP", healthy=True)[5]
    search(page, "groups-table", healthy)
    assert page.run(f"{details}.open")
    assert column(page, "groups-table", "GROUP", healthy=True) == [healthy]
    search(page, "groups-table", "")
    assert not page.run(f"{details}.open")


def test_tables_need_no_script(browser: Browser, file: Path) -> None:
    with browser.page(file) as page:
        page.send("Emulation.setScriptExecutionDisabled", value=True)
        page.send("Page.reload")
        page.wait("document.querySelectorAll('#groups-table tbody tr').length === 157")
        assert page.run("document.documentElement.dataset.drawn") is None
        visible = "[...document.querySelectorAll('#groups-table tbody tr')].filter((e) => e.checkVisibility()).length"
        assert page.run(visible) == 118
        assert page.run("document.querySelector('#lag-chart').checkVisibility()") is False


def test_by_keyboard_alone(page: Page) -> None:
    page.press("/")
    assert page.run("document.activeElement === document.querySelector('#log-dirs-table input')")
    page.press("1")
    assert page.run("document.activeElement.value") == "1"  # a key in a field is text
    page.press("/")
    assert column(page, "log-dirs-table", "LOG DIR") == []
    page.press("Escape")
    assert len(column(page, "log-dirs-table", "LOG DIR")) == 7
    page.press("Tab")
    page.press("Enter")  # all columns
    assert page.run("getComputedStyle(document.querySelector('#log-dirs-table .minor')).display") == "table-cell"
    page.press("Tab")  # the table itself: arrows move it
    page.press("Tab")
    page.press("Enter")
    assert page.run("document.querySelector('#log-dirs-table [aria-sort]').textContent") == "LOG DIR"
    names = column(page, "log-dirs-table", "LOG DIR")
    assert names == sorted(names)


def test_the_chart_shows_what_is_chosen(page: Page) -> None:
    marks = "document.querySelectorAll('#lag-chart canvas').length"
    assert page.run(marks) == 1
    before = page.run("document.querySelector('#lag-chart canvas').toDataURL()")
    page.run(
        "(() => { const s = document.querySelector('#measure'); s.value = 'time_lag_over_time';"
        " s.dispatchEvent(new Event('change')); })()"
    )
    page.wait(marks + " === 1")
    page.wait(f"document.querySelector('#lag-chart canvas').toDataURL() !== {before!r}")


def test_a_state_in_the_timeline_has_its_place(page: Page) -> None:
    """Half of the time OK, then ERR, and nothing in the last of 60 buckets."""
    pieces = page.run(
        "[...document.querySelector('#timeline .track').children]"
        ".map((i) => [i.className, i.style.left, i.style.width])"
    )
    assert [piece[0] for piece in pieces] == ["OK", "ERR"]
    assert [float(piece[1].rstrip("%")) for piece in pieces] == [0, 50]
    assert [float(piece[2].rstrip("%")) for piece in pieces] == pytest.approx([50, 100 * 29 / 60], abs=0.01)


def test_times_are_utc_wherever_the_reader_is(browser: Browser, file: Path) -> None:
    with browser.page(file) as page:
        page.send("Emulation.setTimezoneOverride", timezoneId="Asia/Tokyo")
        page.send("Page.reload")
        page.wait("document.documentElement?.dataset.drawn === 'yes'")
        shown = page.run("document.querySelector('#span').textContent")
        assert shown.startswith("2026-09-21 10:00:00 to 2026-09-21 11:00:00 UTC")


def test_an_empty_cluster_is_a_page_too(browser: Browser, tmp_path: Path) -> None:
    empty = dataclasses.replace(
        sample_report(), findings=[], groups=[], partitions=[], brokers=[], log_dirs=[], topics=[], losses=[],
        lacking=[], cluster_id=None,
    )  # fmt: skip
    with browser.page(written(tmp_path, empty)) as page:
        assert page.run("document.documentElement.dataset.drawn") == "yes"
        assert page.complaints == []
        assert "Nothing needs attention, but the data is incomplete." in page.run(
            "document.querySelector('#findings').textContent"
        )
        assert page.run("document.querySelector('#losses').hidden")


def test_one_pass_is_a_page_too(browser: Browser, tmp_path: Path) -> None:
    """A span without length: points instead of lines."""
    report = sample_report(3, 3)
    groups = [dataclasses.replace(g, lag_over_time=[5], time_lag_over_time=[None], timeline=[]) for g in report.groups]
    span = dataclasses.replace(report.span, to_at=report.span.from_at, buckets=1, passes=1, incomplete=0, missed=1)
    short = [dataclasses.replace(row, size_over_time=[7]) for row in report.log_dirs]
    topics = [dataclasses.replace(row, size_over_time=[None]) for row in report.topics]
    one = dataclasses.replace(report, span=span, groups=groups, log_dirs=short, topics=topics)
    with browser.page(written(tmp_path, one)) as page:
        assert page.run("document.documentElement.dataset.drawn") == "yes"
        assert page.complaints == []
        assert "1 pass skipped" in page.run("document.querySelector('#lacking').textContent")


def test_a_page_of_the_largest_size_is_drawn_in_seconds(browser: Browser, tmp_path: Path) -> None:
    with browser.page(written(tmp_path, sample_report(990, 2000))) as page:
        assert page.run("performance.now()") < 20_000
        assert len(column(page, "partitions-table", "PART")) == 25
        assert page.run("document.querySelector('#partitions-table .more').textContent") == "show all 1,500"


# --- where it is read -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [PHONE, 768, 1920])
def test_nothing_but_tables_is_wider_than_the_window(browser: Browser, file: Path, width: int) -> None:
    with browser.page(file, width=width) as page:
        assert page.run("document.documentElement.scrollWidth") <= width
        assert page.run("Math.max(...[...document.querySelectorAll('.uplot')].map((e) => e.clientWidth))") <= width
        assert page.run("parseFloat(getComputedStyle(document.body).fontSize)") >= 14


def test_charts_follow_the_window(page: Page) -> None:
    wide = page.run("document.querySelector('.uplot').clientWidth")
    page.resize(600, 900)
    page.wait(f"document.querySelector('.uplot').clientWidth < {wide}")


def brightness(page: Page, selector: str = "body") -> float:
    colour: str = page.run(f"getComputedStyle(document.querySelector({selector!r})).backgroundColor")
    numbers = [float(part) for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    return sum(numbers) / 3


def test_dark_where_the_system_is_and_at_a_click(browser: Browser, file: Path) -> None:
    with browser.page(file, dark=True) as page:
        assert brightness(page) < 60
        assert brightness(page, ".card") < 60
        page.run("document.querySelector('#theme').click()")
        assert brightness(page) > 200
        page.media(dark=False)
        page.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")  # it is told then
        page.media(dark=True)
        page.wait("document.documentElement.dataset.theme === 'dark'")


def test_texts_can_be_read_in_both_modes(browser: Browser, file: Path) -> None:
    """Contrast of at least 4.5 to 1 with what is behind (WCAG 2, AA), of each kind of text; lines at least 3 to 1."""
    script = """(() => {
        const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
        const light = (colour) => { const [r, g, b] = colour.slice(0, 3).map((v) => v / 255)
            .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
            return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
        const behind = (each) => { const colour = rgb(getComputedStyle(each).backgroundColor);
            return colour.length === 4 && colour[3] === 0 ? behind(each.parentElement) : colour; };
        const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        const texts = ['.status.OK', '.status.WARN', '.status.ERR', '.status.UNKNOWN', '.dim', 'h2', 'td', 'th button',
            '.tile.ERR b', '.tile.WARN b', '.tile span', 'nav a', 'a.link', '.finding .dim', '.toggle', '.due',
            '.u-legend .u-label', '.lane .label'].map((selector) => {
            const found = document.querySelector(selector);
            return [selector, ratio(light(rgb(getComputedStyle(found).color)), light(behind(found)))];
        });
        const card = light(behind(document.querySelector('.card')));
        const lines = [...document.querySelectorAll('#lag-chart .u-marker')].filter((each) => each.style.borderColor)
            .map((each) => ['line', 1.5 * ratio(light(rgb(each.style.borderColor)), card)]);
        return [...texts, ...lines];
    })()"""
    for dark in (False, True):
        with browser.page(file, dark=dark) as page:
            found = page.run(script)
            assert len([name for name, _ in found if name == "line"]) == 8
            assert [(name, ratio) for name, ratio in found if ratio < 4.5] == []


def test_those_who_do_not_see_it_are_told_what_there_is(page: Page) -> None:
    assert page.run("[...document.querySelectorAll('table.rows')].every((t) => t.caption?.textContent)")
    assert page.run("[...document.querySelectorAll('table.rows th')].every((th) => th.scope === 'col')")
    assert page.run("[...document.querySelectorAll('.scroll')].every((e) => e.tabIndex === 0 && e.ariaLabel)")
    assert page.run("[...document.querySelectorAll('button, a')].every((e) => e.textContent.trim())")
    assert page.run("[...document.querySelectorAll('input, select')].every((e) => e.ariaLabel || e.labels.length)")
    assert page.run("[...document.querySelectorAll('.chart, #timeline .track')].every((e) => e.ariaLabel)")
    assert page.run("document.querySelectorAll('#timeline .track')[5].ariaLabel") == (
        "group-0000: OK from 2026-09-21 10:00:00, UNKNOWN from 2026-09-21 10:30:00"
    )
    ids = page.run("[...document.querySelectorAll('[id]')].map((e) => e.id)")
    assert len(ids) == len(set(ids))
    links = page.run("[...document.querySelectorAll('a')].map((e) => e.hash.slice(1))")
    assert set(links) <= set(ids)


def test_paper_is_white_and_has_no_buttons(browser: Browser, file: Path) -> None:
    with browser.page(file, dark=True) as page:
        assert page.pdf().startswith(b"%PDF-")
        assert page.run("document.documentElement.dataset.theme") == "dark"  # as it was before
        page.media(dark=True, kind="print")
        assert brightness(page) == 255
        assert page.run("getComputedStyle(document.querySelector('.tools')).display") == "none"
        assert page.complaints == []
