// The page: parses the embedded report, draws charts, and makes the tables sortable.

// Rows are embedded as columns.
function rowsOf(table) {
  if (Array.isArray(table)) return table;
  const columns = Object.entries(table.columns).map(([name, values]) => [name, rowsOf(values)]);
  return Array.from({ length: table.size }, (_, i) => Object.fromEntries(columns.map(([name, values]) => [name, values[i]])));
}

const report = JSON.parse(document.getElementById("report").textContent);
for (const name of ["findings", "groups", "partitions", "brokers", "log_dirs", "topics", "losses", "silent_brokers"]) report[name] = rowsOf(report[name]);
const span = report.span;
const FIRST_FINDINGS = 8;
const charts = [], tables = {};
// Current values and series in one row.
const flat = (rows) => rows.map((row) => ({ ...row.now, ...row, now: null }));
const groups = flat(report.groups), topics = flat(report.topics), logDirs = flat(report.log_dirs);

function part(id) {
  return document.getElementById(id);
}

// --- findings ---

function showFindings() {
  const all = [...document.querySelectorAll("#findings-list > li")];
  for (const link of document.querySelectorAll("a.link[data-words]")) link.addEventListener("click", goTo);
  if (all.length <= FIRST_FINDINGS) return;
  const others = all.slice(FIRST_FINDINGS), more = element("button", "more", "show all " + formatCount(all.length));
  others.forEach((line) => { line.hidden = true; });
  more.addEventListener("click", () => { others.forEach((line) => { line.hidden = false; }); more.remove(); });
  part("findings").append(more);
}

// Filter the table of a finding, and scroll to it.
function goTo(event) {
  const link = event.currentTarget, id = link.hash.slice(1);
  event.preventDefault();
  tables[id].filterBy(link.dataset.words);
  part(id + "-table").scrollIntoView();
  tables[id].filter?.focus({ preventScroll: true });
}

// --- groups ---

function showGroups() {
  const chart = new LineChart(part("lag-chart"), span, (row) => row.group, formatCount);
  charts.push(chart);
  const measure = part("measure"), place = part("groups-table"), lanes = place.querySelector(".lanes");
  let rows = [];
  const draw = () => chart.set(rows, measure.value, measure.value === "lag_over_time" ? formatCount : formatDuration);
  measure.addEventListener("change", draw);
  tables.groups = new RowTable(place, "groups", groups, (attention, healthy) => {
    rows = [...attention, ...healthy];
    draw();
    drawTimeline(part("timeline"), span, attention);
    if (lanes) drawTimeline(lanes, span, lanes.closest("details").open ? healthy : []);
  });
}

// --- disks and topics ---

function showLogDirs() {
  const name = (row) => row.broker + " " + row.log_dir, broker = (row) => "broker " + row.broker;
  drawBars(part("disk-bars"), "Volume used", logDirs, name, (r) => r.disk_used, formatShare, 1);
  drawBars(part("disk-growth"), "Growth of each log dir", logDirs, name, (r) => r.growth_bytes_per_hour, formatGrowth);
  drawBars(part("broker-bars"), "Bytes on each broker", report.brokers, broker, (r) => r.size_bytes, formatSize);
  drawBars(part("broker-growth"), "Growth of each broker", report.brokers, broker, (r) => r.growth_bytes_per_hour, formatGrowth);
  const chart = new LineChart(part("disk-chart"), span, name, formatSize);
  charts.push(chart);
  tables["log-dirs"] = new RowTable(part("log-dirs-table"), "log dirs", logDirs,
    (attention, healthy) => chart.set([...attention, ...healthy], "size_over_time"));
  tables.losses = new RowTable(part("losses-table"), "losses", report.losses);
}

function showTopics() {
  const name = (row) => row.topic;
  drawBars(part("topic-bars"), "Bytes of all replicas", topics, name, (r) => r.replicas_bytes, formatSize);
  drawBars(part("topic-growth"), "Growth", topics, name, (r) => r.growth_bytes_per_hour, formatGrowth);
  drawBars(part("topic-time"), "retention.ms used", topics, name, (r) => r.retention_ms_used, formatShare, 1);
  drawBars(part("topic-bytes"), "retention.bytes used", topics, name, (r) => r.retention_bytes_used, formatShare, 1);
  tables.topics = new RowTable(part("topics-table"), "topics", topics);
}

// --- the page ---

// A change of colors (printing, system setting, button) requires redrawing the canvases.
function theme(name) {
  document.documentElement.dataset.theme = name;
  for (const chart of charts) chart.draw();
}

function listen() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let selected = dark.matches ? "dark" : "light";
  document.documentElement.dataset.theme = selected;
  dark.addEventListener("change", () => theme((selected = dark.matches ? "dark" : "light")));
  part("theme").addEventListener("click", () => theme((selected = selected === "dark" ? "light" : "dark")));
  addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target.closest("input, select, textarea")) return;
    event.preventDefault();
    nearestFilter()?.focus();
  });
  addEventListener("beforeprint", () => theme("light"));
  addEventListener("afterprint", () => theme(selected));
  let waiting = 0;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => charts.forEach((chart) => chart.draw()), 150);
  });
}

// The filter of the table in view, or of the next one. Filters of collapsed tables are skipped.
function nearestFilter() {
  const filters = [...document.querySelectorAll(".tools input")].filter((filter) => filter.checkVisibility?.() ?? true);
  return filters.find((filter) => filter.closest("section").getBoundingClientRect().bottom > innerHeight / 2) || filters[0];
}

listen();
// kctl recognizes its own pages by the title in the file, so only the displayed title changes.
document.title = "kctl report: " + part("cluster").textContent;
showFindings();
showLogDirs();
showGroups();
tables.partitions = new RowTable(part("partitions-table"), "partitions", report.partitions);
showTopics();
document.documentElement.dataset.drawn = "yes";
