// The page: reads the report that lies in it, and draws each part.

const report = JSON.parse(document.getElementById("report").textContent);
const span = report.span, overview = report.overview;
const charts = [];
// Figures of now and series in one row.
const flat = (rows) => rows.map((row) => ({ ...row.now, ...row, now: null }));
const groups = flat(report.groups), logDirs = flat(report.log_dirs), topics = flat(report.topics);

function part(id) {
  return document.getElementById(id);
}

function passes(count) {
  return formatCount(count) + (count === 1 ? " pass" : " passes");
}

function showHead() {
  const cluster = report.cluster_id === null ? "cluster" : "cluster " + printable(report.cluster_id);
  document.title = "kctl report: " + cluster;
  part("cluster").textContent = cluster;
  part("span").textContent =
    formatTime(span.from_at) + " to " + formatTime(span.to_at) + " UTC, " + passes(span.passes);
  const lacking = [...report.lacking];
  if (span.incomplete) lacking.unshift(passes(span.incomplete) + " could not read all");
  if (span.missed) lacking.unshift(passes(span.missed) + " left out: the one before took too long");
  part("lacking").hidden = !lacking.length;
  part("lacking-list").append(...lacking.map((text) => element("li", "", text)));
}

function tile(title, value, className) {
  const made = element("div", "tile"), big = element("b", className, value);
  made.append(big, element("span", "", title));
  return made;
}

function showOverview() {
  const some = (value, show) => (value === null ? "–" : show(value));
  const tiles = [
    tile("groups", formatCount(overview.groups)),
    tile("groups in ERR", formatCount(overview.groups_err), overview.groups_err ? "ERR" : ""),
    tile("groups in WARN", formatCount(overview.groups_warn), overview.groups_warn ? "WARN" : ""),
    tile("lag, messages", some(overview.lag, formatCount)),
    tile("longest time lag", some(overview.time_lag_ms, formatDuration)),
    tile("lost, messages", some(overview.lost, formatCount), overview.lost ? "ERR" : ""),
    tile("next loss in", some(overview.next_loss_ms, formatDuration), overview.next_loss_ms === null ? "" : "WARN"),
    tile("topics", formatCount(overview.topics)),
    tile("all replicas", formatSize(overview.replicas_bytes)),
    tile("growth", some(overview.growth_bytes_per_hour, KINDS.growth.show)),
    tile("a disk is full in", some(overview.next_full_ms, formatDuration), overview.next_full_ms === null ? "" : "WARN"),
    tile("log dirs on brokers", formatCount(overview.log_dirs) + " on " + formatCount(overview.brokers)),
  ];
  if (overview.offline_log_dirs) tiles.push(tile("log dirs offline", formatCount(overview.offline_log_dirs), "ERR"));
  part("tiles").append(...tiles);
}

function showGroups() {
  const chart = new LineChart(part("lag-chart"), span, (row) => row.group, formatCount);
  charts.push(chart);
  const measure = part("measure");
  let rows = [];
  const draw = () => {
    const lag = measure.value === "lag_over_time";
    chart.set(rows, measure.value, lag ? formatCount : formatDuration);
  };
  measure.addEventListener("change", draw);
  new RowTable(part("groups-table"), "groups", [
    { key: "group", title: "GROUP", kind: "text" }, { key: "status", title: "STATUS", kind: "status" },
    { key: "worst_status", title: "WORST", kind: "status" }, { key: "state", title: "STATE", kind: "plain" },
    { key: "topics", title: "TOPICS", kind: "count" },
    { key: "partitions", title: "PARTITIONS", kind: "count" }, { key: "lag", title: "LAG", kind: "count" },
    { key: "lag_over_time", title: "LAG OVER TIME", kind: "spark" }, { key: "lost", title: "LOST", kind: "count" },
    { key: "time_lag_ms", title: "TIME LAG", kind: "duration" },
    { key: "consumed_per_s", title: "CONSUMED", kind: "rate" }, { key: "produced_per_s", title: "PRODUCED", kind: "rate" },
    { key: "catch_up_ms", title: "CATCHES UP IN", kind: "duration" },
    { key: "deletion_ms", title: "DELETED IN", kind: "duration" }, { key: "loss_ms", title: "LOSES IN", kind: "duration" },
    { key: "last_commit", title: "LAST COMMIT", kind: "time" }, { key: "at", title: "READ AT", kind: "time" },
  ], groups, (found) => {
    rows = found;
    draw();
    drawTimeline(part("timeline"), span, found);
  });
}

function showPartitions() {
  if (report.partitions.length < overview.partitions) {
    part("partitions-note").textContent =
      "The worst " + formatCount(report.partitions.length) + " of " + formatCount(overview.partitions) + " partitions.";
  }
  new RowTable(part("partitions-table"), "partitions", [
    { key: "group", title: "GROUP", kind: "text" }, { key: "topic", title: "TOPIC", kind: "text" },
    { key: "partition", title: "PART", kind: "count" }, { key: "status", title: "STATUS", kind: "status" },
    { key: "standing", title: "STANDING", kind: "plain" },
    { key: "committed_offset", title: "COMMITTED", kind: "count" }, { key: "log_end_offset", title: "LOG END", kind: "count" },
    { key: "lag", title: "LAG", kind: "count" }, { key: "lost", title: "LOST", kind: "count" },
    { key: "time_lag_ms", title: "TIME LAG", kind: "duration" },
    { key: "consumed_per_s", title: "CONSUMED", kind: "rate" }, { key: "produced_per_s", title: "PRODUCED", kind: "rate" },
    { key: "catch_up_ms", title: "CATCHES UP IN", kind: "duration" },
    { key: "deletion_by_time_ms", title: "DELETED BY TIME IN", kind: "duration" },
    { key: "deletion_by_bytes_ms", title: "BY BYTES IN", kind: "duration" },
    { key: "loss_ms", title: "LOSES IN", kind: "duration" },
    { key: "unchanged_ms", title: "UNCHANGED FOR", kind: "duration" },
    { key: "client_id", title: "CLIENT", kind: "text" }, { key: "host", title: "HOST", kind: "text" },
  ], report.partitions);
}

function showLogDirs() {
  const name = (row) => row.broker + " " + row.log_dir;
  drawBars(part("disk-bars"), "Share of the volume that is used", logDirs, name, (r) => r.disk_used, KINDS.share.show, 1);
  drawBars(part("broker-bars"), "Bytes on each broker", report.brokers, (r) => "broker " + r.broker, (r) => r.size_bytes, formatSize);
  drawBars(part("broker-growth"), "Growth of each broker", report.brokers, (r) => "broker " + r.broker, (r) => r.growth_bytes_per_hour, KINDS.growth.show);
  const chart = new LineChart(part("disk-chart"), span, name, formatSize);
  charts.push(chart);
  new RowTable(part("log-dirs-table"), "log dirs", [
    { key: "broker", title: "BROKER", kind: "count" }, { key: "log_dir", title: "LOG DIR", kind: "text" },
    { key: "topics", title: "TOPICS", kind: "count" }, { key: "replicas", title: "REPLICAS", kind: "count" },
    { key: "size_bytes", title: "SIZE", kind: "size" }, { key: "size_over_time", title: "SIZE OVER TIME", kind: "spark" },
    { key: "growth_bytes_per_hour", title: "GROWTH", kind: "growth" }, { key: "total_bytes", title: "VOLUME", kind: "size" },
    { key: "usable_bytes", title: "FREE", kind: "size" }, { key: "disk_used", title: "USED", kind: "share" },
    { key: "full_ms", title: "FULL IN", kind: "duration" }, { key: "error", title: "ERROR", kind: "text" },
  ], logDirs, (found) => chart.set(found, "size_over_time"));
}

function showTopics() {
  const name = (row) => row.topic;
  drawBars(part("topic-bars"), "Bytes of all replicas", topics, name, (r) => r.replicas_bytes, formatSize);
  drawBars(part("topic-growth"), "Growth", topics, name, (r) => r.growth_bytes_per_hour, KINDS.growth.show);
  drawBars(part("topic-time"), "Share of retention.ms that is used", topics, name, (r) => r.retention_ms_used, KINDS.share.show, 1);
  drawBars(part("topic-bytes"), "Share of retention.bytes that is used", topics, name, (r) => r.retention_bytes_used, KINDS.share.show, 1);
  new RowTable(part("topics-table"), "topics", [
    { key: "topic", title: "TOPIC", kind: "text" }, { key: "partitions", title: "PARTITIONS", kind: "count" },
    { key: "replicas", title: "REPLICAS", kind: "count" }, { key: "size_bytes", title: "SIZE", kind: "size" },
    { key: "replicas_bytes", title: "ALL REPLICAS", kind: "size" },
    { key: "size_over_time", title: "SIZE OVER TIME", kind: "spark" }, { key: "growth_bytes_per_hour", title: "GROWTH", kind: "growth" },
    { key: "cleanup_policy", title: "POLICY", kind: "plain" },
    { key: "retention_ms", title: "RETENTION", kind: "limit" }, { key: "retention_ms_used", title: "TIME USED", kind: "share" },
    { key: "oldest_age_ms", title: "OLDEST", kind: "duration" },
    { key: "retention_bytes", title: "RETENTION BYTES", kind: "bytesLimit" },
    { key: "retention_bytes_used", title: "BYTES USED", kind: "share" }, { key: "ceiling_bytes", title: "GROWS TO", kind: "size" },
  ], topics);
}

// On paper, and where the system or the reader says so, colours are others; canvases have to be drawn anew.
function theme(name) {
  document.documentElement.dataset.theme = name;
  for (const chart of charts) chart.draw();
}

function followThemes() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let chosen = dark.matches ? "dark" : "light";
  document.documentElement.dataset.theme = chosen;
  dark.addEventListener("change", () => theme((chosen = dark.matches ? "dark" : "light")));
  part("theme").addEventListener("click", () => theme((chosen = chosen === "dark" ? "light" : "dark")));
  addEventListener("beforeprint", () => theme("light"));
  addEventListener("afterprint", () => theme(chosen));
  let waiting = 0;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => charts.forEach((chart) => chart.draw()), 150);
  });
}

followThemes();
showHead();
showOverview();
showGroups();
showPartitions();
showLogDirs();
showTopics();
document.documentElement.dataset.drawn = "yes";
