// Lines over time by uPlot, states over time and bars as plain elements.

const LINES = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b58900", "#56b4e9", "#8a63d2", "#6b7686"];
const MOST_LANES = 40;
const MOST_BARS = 20;

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function bucketTimes(span) {
  const from = Date.parse(span.from_at) / 1000;
  return Array.from({ length: span.buckets }, (_, i) => from + (i * span.bucket_ms) / 1000);
}

// 24 hours; the date where a day begins, and at the first mark.
function timeMarks(_, marks, __, ___, step) {
  let day = null;
  return marks.map((seconds) => {
    const text = formatMoment(seconds), date = text.slice(5, 10);
    const clock = text.slice(11, step < 60 ? 19 : 16);
    const first = date !== day;
    day = date;
    return step >= 86400 ? date : first ? clock + "\n" + date : clock;
  });
}

// Series of the first rows, one colour each; drawn anew when colours, the width or the rows change.
class LineChart {
  constructor(place, span, name, show) {
    this.place = place;
    this.times = bucketTimes(span);
    this.name = name;
    this.show = show;
    this.rows = [];
    this.key = null;
    this.plot = null;
  }

  set(rows, key, show) {
    this.rows = rows.slice(0, LINES.length);
    this.key = key;
    if (show) this.show = show;
    this.draw();
  }

  draw() {
    if (this.plot) this.plot.destroy();
    this.plot = null;
    if (!this.rows.length || !this.key) return;
    const ink = colour("--ink"), line = colour("--line"), axis = { stroke: ink, grid: { stroke: line }, ticks: { stroke: line } };
    const shown = (_, v) => (v === null || v === undefined ? "–" : this.show(v));
    const options = {
      width: Math.max(this.place.clientWidth, 200), height: 260,
      tzDate: (ts) => uPlot.tzDate(new Date(ts * 1000), "Etc/UTC"),
      scales: {
        // One pass alone would be drawn in the middle of years.
        x: { range: (_, low, high) => (high - low < 60 ? [low - 30, low + 30] : [low, high]) },
        y: { range: (_, low, high) => [Math.min(low ?? 0, 0), Math.max(high ?? 1, 1)] },
      },
      axes: [{ ...axis, values: timeMarks, space: 70 }, { ...axis, size: 70, values: (_, ticks) => ticks.map((v) => this.show(v)) }],
      series: [
        { label: "UTC", value: (_, v) => (v === null ? "–" : formatMoment(v)) },
        ...this.rows.map((row, i) => ({
          label: printable(this.name(row)), stroke: LINES[i], width: 2, points: { show: this.times.length < 3 }, value: shown,
        })),
      ],
    };
    this.plot = new uPlot(options, [this.times, ...this.rows.map((row) => row[this.key])], this.place);
  }
}

function coloured(status) {
  return ["STOP", "STALL", "REWIND"].includes(status) ? "ERR" : status in BADNESS ? status : "UNKNOWN";
}

function drawTimeline(place, span, rows) {
  const times = bucketTimes(span);
  const lanes = rows.slice(0, MOST_LANES).map((row) => {
    const lane = element("div", "lane"), label = element("div", "label", row.group), track = element("div", "track");
    label.title = printable(row.group);
    for (const part of row.timeline) {
      if (part.status === null) continue;
      const piece = element("i", coloured(part.status));
      piece.style.left = (100 * part.first) / span.buckets + "%";
      piece.style.width = (100 * part.count) / span.buckets + "%";
      piece.title = part.status + " from " + formatMoment(times[part.first]);
      track.append(piece);
    }
    lane.append(label, track);
    return lane;
  });
  const ends = element("div", "ends");
  ends.append(element("span", "", formatTime(span.from_at)), element("span", "", formatTime(span.to_at) + " UTC"));
  const key = element("div", "key");
  for (const status of ["OK", "WARN", "ERR", "UNKNOWN"]) {
    const item = element("span", "", "");
    item.append(element("i", status), document.createTextNode(status === "UNKNOWN" ? "not judged" : status));
    key.append(item);
  }
  place.replaceChildren(...lanes, ends, key);
  if (rows.length > MOST_LANES) place.append(element("p", "dim", "The first " + MOST_LANES + " groups of the table below."));
}

// The largest values as bars; `most` (1 for shares) is the full length where it is given. Falling ones have none.
function drawBars(place, title, rows, name, value, show, most) {
  const known = rows.filter((row) => value(row) !== null && value(row) !== undefined);
  known.sort((a, b) => value(b) - value(a));
  const largest = Math.max(most || 0, known.length ? value(known[0]) : 0);
  const lanes = known.slice(0, MOST_BARS).map((row) => {
    const lane = element("div", "lane"), track = element("div", "track"), label = element("div", "label", name(row));
    label.title = printable(name(row));
    const amount = value(row), piece = element("i", most && amount >= 0.9 * most ? "full" : "");
    piece.style.width = (largest > 0 && amount > 0 ? Math.min((100 * amount) / largest, 100) : 0) + "%";
    track.append(piece);
    lane.append(label, track, element("div", "value", show(amount)));
    return lane;
  });
  if (!lanes.length) lanes.push(element("p", "dim", "not known"));
  place.replaceChildren(element("h3", "", title), ...lanes);
  if (known.length > MOST_BARS) place.append(element("p", "dim", "The " + MOST_BARS + " largest of " + known.length + "."));
}
