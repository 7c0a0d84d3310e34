// The page: parses the embedded report and draws each section.

// Rows are embedded as columns.
function rowsOf(table) {
  if (Array.isArray(table)) return table;
  const columns = Object.entries(table.columns).map(([name, values]) => [name, rowsOf(values)]);
  return Array.from({ length: table.size }, (_, i) => Object.fromEntries(columns.map(([name, values]) => [name, values[i]])));
}

const report = JSON.parse(document.getElementById("report").textContent);
for (const name of ["findings", "groups", "partitions", "brokers", "log_dirs", "topics", "losses", "silent_brokers"]) report[name] = rowsOf(report[name]);
const span = report.span, overview = report.overview;
const FIRST_FINDINGS = 8;
const DAY_MS = 24 * 3600 * 1000;
const charts = [], tables = {};
// Current values and series in one row.
const flat = (rows) => rows.map((row) => ({ ...row.now, ...row, now: null }));
const groups = flat(report.groups), topics = flat(report.topics);
const logDirs = flat(report.log_dirs).map((row) => ({ ...row, filled_by: filledBy(row.causes), error: row.error ?? silence(row.silent_since) }));

// Why a log dir's values are stale; null if they are current.
function silence(since) {
  if (since === null) return null;
  return "no response since " + (since === span.from_at ? "before " : "") + formatTime(since).slice(5);
}

function filledBy(causes) {
  const large = causes.filter((each) => each.share >= 0.05).slice(0, 3);
  const named = large.map((each) => (each.topic ?? "others") + " " + KINDS.share.show(each.share));
  return named.join(", ") || (causes.length ? "many topics" : null);
}

function part(id) {
  return document.getElementById(id);
}

function passes(count) {
  return counted(count, "pass", "passes");
}

function showHead() {
  const cluster = report.cluster_id === null ? "cluster" : "cluster " + printable(report.cluster_id);
  document.title = "kctl report: " + cluster;
  part("cluster").textContent = cluster;
  part("span").textContent =
    formatTime(span.from_at) + " to " + formatTime(span.to_at) + " UTC, " + passes(span.passes);
  const lacking = [...report.lacking];
  if (report.missing_tables.includes("commits")) lacking.push("the store has no commits: groups are unknown");
  lacking.push(...span.gaps.map(gapText));
  if (span.missed) lacking.unshift(passes(span.missed) + " skipped: the previous pass took too long");
  if (span.passes === 1 && overview.groups_unknown) lacking.unshift("a single pass gives no status, rates or growth");
  part("lacking").hidden = !lacking.length && !span.incomplete;
  part("lacking-list").append(...lacking.map((text) => element("li", "", text)));
  if (span.incomplete) part("lacking-list").append(failuresOf(span));
}

// Read failures of passes, one per line.
function failuresOf(span) {
  const line = element("li", "", passes(span.incomplete) + " incomplete" + (span.failures.length ? ":" : ""));
  const list = element("ul");
  list.append(...span.failures.map((text) => element("li", "", text)));
  if (span.failures.length) line.append(list);
  return line;
}

function gapText(gap) {
  const duration = formatDuration(Date.parse(gap.to_at) - Date.parse(gap.from_at));
  return "no snapshots from " + formatTime(gap.from_at).slice(5) + " to " + formatTime(gap.to_at).slice(11) +
    " (" + duration + "): " + passes(gap.passes) + " missing";
}

// --- findings ---

function due(ms) {
  const at = formatMoment(Date.parse(span.to_at) / 1000 + ms / 1000).slice(5, 16);
  return ms <= 0 ? "now" : "in " + formatDuration(ms) + ", " + at;
}

function findingOf(finding) {
  const line = element("li", "finding"), body = element("div"), more = [];
  const broker = finding.broker === null ? "" : " on broker " + finding.broker;
  const name = element("button", "link", finding.kind + " " + finding.name + broker);
  name.type = "button";
  name.addEventListener("click", () => goTo(finding));
  if (finding.since) more.push("since " + formatTime(finding.since).slice(5, 16));
  else if (finding.before_span) more.push("since before " + formatTime(span.from_at).slice(5, 16));
  more.push(finding.advice);
  body.append(name, element("span", "", " " + finding.what), element("div", "dim", more.join(" · ")));
  line.append(element("span", "status " + statusClass(finding.severity), finding.severity), body);
  if (finding.due_ms !== null) line.append(element("b", "due", due(finding.due_ms)));
  return line;
}

// Scroll to the row of a finding.
function goTo(finding) {
  const id = { group: "groups", "log dir": "log-dirs", topic: "topics", broker: "log-dirs" }[finding.kind];
  if (!id) return part("lacking").scrollIntoView();
  tables[id].look(finding.kind === "broker" ? "no response" : finding.name);
  part(id + "-table").scrollIntoView();
  tables[id].filter.focus({ preventScroll: true });
}

function showFindings() {
  const list = part("findings-list"), all = report.findings.map(findingOf);
  list.append(...all.slice(0, FIRST_FINDINGS));
  if (!all.length) {
    const partial = report.lacking.length || span.incomplete;
    list.replaceWith(element("p", "", "Nothing needs attention" + (partial ? ", but the data is incomplete." : ".")));
  }
  if (all.length <= FIRST_FINDINGS) return;
  const more = element("button", "more", "show all " + formatCount(all.length));
  more.addEventListener("click", () => { list.append(...all.slice(FIRST_FINDINGS)); more.remove(); });
  part("findings").append(more);
}

// Groups that lost messages, except stale, dead and abandoned ones.
const loses = (group) => !group.gone && group.lost && group.status !== "OK";

function tile(title, value, className) {
  const box = element("div", "tile " + (className || "")), big = element("b", "", value);
  box.append(big, element("span", "", title));
  return box;
}

function showOverview() {
  const some = (value, show) => (value === null ? "–" : show(value));
  const alarm = (value, className) => (value ? className : ""), silent = report.silent_brokers.length;
  const soon = (ms) => (ms === null || ms > 7 * DAY_MS ? "" : ms <= DAY_MS ? "ERR" : "WARN");
  const groupCount = (count) => (report.missing_tables.includes("commits") ? "–" : formatCount(count));
  part("tiles").append(
    tile("groups in ERR, of " + groupCount(overview.group_count), groupCount(overview.groups_err), alarm(overview.groups_err, "ERR")),
    tile("groups in WARN", groupCount(overview.groups_warn), alarm(overview.groups_warn, "WARN")),
    tile("next loss in", some(overview.next_loss_ms, formatEta), soon(overview.next_loss_ms)),
    tile("lost, messages", some(overview.lost, formatCount), alarm(groups.some(loses), "ERR")),
    tile("next full disk in", some(overview.next_full_ms, formatEta), soon(overview.next_full_ms)),
    tile("log dirs offline, of " + formatCount(overview.log_dir_count), formatCount(overview.offline_log_dirs), alarm(overview.offline_log_dirs, "ERR")),
    tile("lag, messages", some(overview.lag, formatCount)),
    tile("longest time lag", some(overview.time_lag_at_least_ms, (ms) => (overview.time_lag_ms === null ? ">" : "") + formatDuration(ms))),
    tile("bytes of all replicas", formatSize(overview.replicas_bytes)),
    tile("growth", some(overview.growth_bytes_per_hour, KINDS.growth.show)),
    tile("topics", formatCount(overview.topic_count)),
    tile("brokers" + (silent ? ", " + formatCount(silent) + " not responding" : ""), formatCount(overview.broker_count), alarm(silent, "ERR")),
  );
}

// --- groups ---

function showGroups() {
  collapse("groups-rows", groups, "group");
  const chart = new LineChart(part("lag-chart"), span, (row) => row.group, formatCount);
  charts.push(chart);
  const measure = part("measure");
  let rows = [];
  const draw = () => {
    const lag = measure.value === "lag_over_time";
    chart.set(rows, measure.value, lag ? formatCount : formatDuration);
  };
  measure.addEventListener("change", draw);
  tables.groups = new RowTable(part("groups-table"), "groups", [
    { key: "group", title: "GROUP", kind: "text" }, { key: "status", title: "STATUS", kind: "status" },
    { key: "lag", title: "LAG", kind: "count" },
    { key: "lag_over_time", title: "LAG OVER TIME", kind: "spark" },
    { key: "time_lag_ms", least: "time_lag_at_least_ms", title: "TIME LAG", kind: "duration" }, { key: "lost", title: "LOST", kind: "count" },
    { key: "loss_ms", title: "LOSES IN", kind: "eta" },
    { key: "catch_up_ms", title: "CATCHES UP IN", kind: "duration" }, { key: "state", title: "STATE", kind: "plain" },
    { key: "consumed_per_s", title: "CONSUMED", kind: "rate" }, { key: "produced_per_s", title: "PRODUCED", kind: "rate" },
    { key: "worst_status", title: "WORST", kind: "status", minor: true },
    { key: "deletion_ms", title: "DELETED IN", kind: "eta", minor: true },
    { key: "topic_count", title: "TOPICS", kind: "count", minor: true },
    { key: "partition_count", title: "PARTITIONS", kind: "count", minor: true },
    { key: "last_commit", title: "LAST COMMIT", kind: "time", minor: true }, { key: "at", title: "READ AT", kind: "time", minor: true },
  ], groups, (matches) => {
    rows = matches;
    draw();
    drawTimeline(part("timeline"), span, matches);
  });
}

// State how many of all rows a truncated table has.
function note(id, rows, all, words) {
  if (rows.length < all) part(id).textContent = words + " " + formatCount(rows.length) + " of " + formatCount(all) + ".";
}

// Collapse rows that are all OK.
function collapse(id, rows, noun) {
  if (rows.length && rows.every((row) => row.status === "OK")) part(id).open = false;
  part(id + "-summary").textContent = counted(rows.length, noun) + (part(id).open ? "" : ", all OK");
}

function showPartitions() {
  collapse("partitions-rows", report.partitions, "partition");
  note("partitions-note", report.partitions, overview.partition_count, "Worst");
  tables.partitions = new RowTable(part("partitions-table"), "partitions", [
    { key: "group", title: "GROUP", kind: "text" }, { key: "topic", title: "TOPIC", kind: "text" },
    { key: "partition", title: "PART", kind: "count" }, { key: "status", title: "STATUS", kind: "status" },
    { key: "lag", title: "LAG", kind: "count" }, { key: "time_lag_ms", least: "time_lag_at_least_ms", title: "TIME LAG", kind: "duration" },
    { key: "lost", title: "LOST", kind: "count" }, { key: "loss_ms", title: "LOSES IN", kind: "eta" },
    { key: "catch_up_ms", title: "CATCHES UP IN", kind: "duration" },
    { key: "consumed_per_s", title: "CONSUMED", kind: "rate" }, { key: "produced_per_s", title: "PRODUCED", kind: "rate" },
    { key: "client_id", title: "CLIENT", kind: "text" },
    { key: "host", title: "HOST", kind: "text", minor: true }, { key: "standing", title: "STANDING", kind: "plain", minor: true },
    { key: "committed_offset", title: "COMMITTED", kind: "count", minor: true },
    { key: "log_end_offset", title: "LOG END", kind: "count", minor: true },
    { key: "deletion_by_time_ms", title: "DELETED BY TIME IN", kind: "eta", minor: true },
    { key: "deletion_by_bytes_ms", title: "BY BYTES IN", kind: "eta", minor: true },
    { key: "unchanged_ms", title: "UNCHANGED FOR", kind: "duration", minor: true },
  ], report.partitions);
}

// --- disks and topics ---

function showLogDirs() {
  const name = (row) => row.broker + " " + row.log_dir, broker = (row) => "broker " + row.broker;
  drawBars(part("disk-bars"), "Volume used", logDirs, name, (r) => r.disk_used, KINDS.share.show, 1);
  drawBars(part("disk-growth"), "Growth of each log dir", logDirs, name, (r) => r.growth_bytes_per_hour, KINDS.growth.show);
  drawBars(part("broker-bars"), "Bytes on each broker", report.brokers, broker, (r) => r.size_bytes, formatSize);
  drawBars(part("broker-growth"), "Growth of each broker", report.brokers, broker, (r) => r.growth_bytes_per_hour, KINDS.growth.show);
  const chart = new LineChart(part("disk-chart"), span, name, formatSize);
  charts.push(chart);
  tables["log-dirs"] = new RowTable(part("log-dirs-table"), "log dirs", [
    { key: "log_dir", title: "LOG DIR", kind: "text" }, { key: "broker", title: "BROKER", kind: "count" },
    { key: "full_ms", least: "full_after_ms", title: "FULL IN", kind: "eta", never: neverFull }, { key: "disk_used", title: "USED", kind: "share" },
    { key: "usable_bytes", title: "FREE", kind: "size" }, { key: "total_bytes", title: "VOLUME", kind: "size" },
    { key: "size_bytes", title: "SIZE", kind: "size" }, { key: "size_over_time", title: "SIZE OVER TIME", kind: "spark" },
    { key: "growth_bytes_per_hour", title: "GROWTH", kind: "growth" }, { key: "filled_by", title: "FILLED BY", kind: "text" },
    { key: "error", title: "ERROR", kind: "text" },
    { key: "topic_count", title: "TOPICS", kind: "count", minor: true }, { key: "replica_count", title: "REPLICAS", kind: "count", minor: true },
    { key: "growing_to_bytes", title: "GROWS TO", kind: "size", minor: true },
  ], logDirs, (matches) => chart.set(matches, "size_over_time"));
  showLosses();
}

// A log dir that does not fill up at its measured growth. Unknown growth is not "never".
function neverFull(row) {
  return row.disk_used !== null && row.growth_bytes_per_hour !== null;
}

function showLosses() {
  part("losses").hidden = !report.losses.length;
  if (part("losses").hidden) return;
  tables.losses = new RowTable(part("losses-table"), "losses", [
    { key: "log_dir", title: "LOG DIR", kind: "text" }, { key: "broker", title: "BROKER", kind: "count" },
    { key: "full_ms", title: "FULL IN", kind: "eta" }, { key: "group", title: "GROUP", kind: "text" },
    { key: "partition_count", title: "PARTITIONS", kind: "count" }, { key: "unread", title: "UNREAD", kind: "count" },
    { key: "sole", title: "ONLY HERE", kind: "count" }, { key: "deleted", title: "DELETED UNREAD", kind: "count" },
    { key: "loss_ms", title: "LOSES IN", kind: "eta" },
  ], report.losses);
}

function showTopics() {
  const name = (row) => row.topic;
  drawBars(part("topic-bars"), "Bytes of all replicas", topics, name, (r) => r.replicas_bytes, formatSize);
  drawBars(part("topic-growth"), "Growth", topics, name, (r) => r.growth_bytes_per_hour, KINDS.growth.show);
  drawBars(part("topic-time"), "retention.ms used", topics, name, (r) => r.retention_ms_used, KINDS.share.show, 1);
  drawBars(part("topic-bytes"), "retention.bytes used", topics, name, (r) => r.retention_bytes_used, KINDS.share.show, 1);
  note("topics-note", topics, overview.topic_count, "Largest");
  tables.topics = new RowTable(part("topics-table"), "topics", [
    { key: "topic", title: "TOPIC", kind: "text" }, { key: "replicas_bytes", title: "ALL REPLICAS", kind: "size" },
    { key: "size_over_time", title: "SIZE OVER TIME", kind: "spark" }, { key: "growth_bytes_per_hour", title: "GROWTH", kind: "growth" },
    { key: "ceiling_bytes", title: "GROWS TO", kind: "size" },
    { key: "retention_ms", title: "RETENTION TIME", kind: "limit" }, { key: "retention_ms_used", title: "TIME USED", kind: "share" },
    { key: "retention_bytes", title: "RETENTION BYTES", kind: "bytesLimit" },
    { key: "retention_bytes_used", title: "BYTES USED", kind: "share" }, { key: "cleanup_policy", title: "POLICY", kind: "plain" },
    { key: "partition_count", title: "PARTITIONS", kind: "count", minor: true },
    { key: "replica_count", title: "REPLICAS", kind: "count", minor: true }, { key: "size_bytes", title: "SIZE", kind: "size", minor: true },
    { key: "oldest_age_ms", title: "OLDEST", kind: "duration", minor: true }, { key: "skew", title: "SKEW", kind: "ratio", minor: true },
    { key: "dirty_ratio_at_least", title: "DIRTY", kind: "share", minor: true },
  ], topics);
}

// --- the page ---

// A change of colors (printing, system setting, button) requires redrawing the canvases.
function theme(name) {
  document.documentElement.dataset.theme = name;
  for (const chart of charts) chart.draw();
}

function followReader() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let chosen = dark.matches ? "dark" : "light";
  document.documentElement.dataset.theme = chosen;
  dark.addEventListener("change", () => theme((chosen = dark.matches ? "dark" : "light")));
  part("theme").addEventListener("click", () => theme((chosen = chosen === "dark" ? "light" : "dark")));
  addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target.closest("input, select, textarea")) return;
    event.preventDefault();
    nearestFilter()?.focus();
  });
  addEventListener("beforeprint", () => theme("light"));
  addEventListener("afterprint", () => theme(chosen));
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

followReader();
showHead();
showFindings();
showOverview();
showGroups();
showPartitions();
showLogDirs();
showTopics();
document.documentElement.dataset.drawn = "yes";
