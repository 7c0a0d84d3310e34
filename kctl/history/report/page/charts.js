// Line charts over time, drawn by uPlot.

const MAX_LINES = 8, LINE_COLORS = 4;

function style(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function bucketTimes(span) {
  const from = Date.parse(span.from_at) / 1000;
  return Array.from({ length: span.buckets }, (_, i) => from + (i * span.bucket_ms) / 1000);
}

// Axis labels: 24-hour times, with the date at the first mark and at the start of each day.
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

// The value in the legend: the value under the pointer, else the last known value.
function legendValue(plot, series, at, show) {
  const value = at === null || at === undefined ? plot.data[series].findLast?.((v) => v !== null) : plot.data[series][at];
  return value === null || value === undefined ? "–" : show(value);
}

// A chart of the first rows, one line each: four colors, then the same colors dashed. It is redrawn when the colors, the
// width or the rows change. Its left edge is aligned with the status lanes below.
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
    this.rows = rows.slice(0, MAX_LINES);
    this.key = key;
    if (show) this.show = show;
    this.draw();
  }

  draw() {
    if (this.plot) this.plot.destroy();
    this.plot = null;
    if (!this.rows.length || !this.key) return;
    this.plot = new uPlot(this.options(), [this.times, ...this.rows.map((row) => row[this.key])], this.place);
  }

  options() {
    const axis = { stroke: style("--ink"), grid: { stroke: style("--line"), width: 1 }, ticks: { stroke: style("--line"), width: 1 } };
    return {
      width: Math.max(this.place.clientWidth, 200), height: 260, padding: [null, 12, null, 0],
      legend: { markers: { dash: (_, series) => (series > LINE_COLORS ? "dashed" : "solid") } },
      tzDate: (ts) => uPlot.tzDate(new Date(ts * 1000), "Etc/UTC"),
      scales: {
        // With a single pass, the default range would span years.
        x: { range: (_, low, high) => (this.times.length < 2 ? [this.times[0] - 30, this.times[0] + 30] : [low, high]) },
        y: { range: (_, low, high) => [Math.min(low ?? 0, 0), Math.max(high ?? 1, 1)] },
      },
      axes: [
        { ...axis, values: timeMarks, space: 70 },
        { ...axis, size: parseInt(style("--label"), 10) + 8, values: (_, ticks) => ticks.map((v) => (Number.isInteger(v) ? this.show(v) : "")) },
      ],
      series: [
        { label: "UTC", value: (plot, _, series, at) => legendValue(plot, series, at, formatMoment) },
        ...this.rows.map((row, i) => ({
          label: printable(this.name(row)), stroke: style("--line-" + ((i % LINE_COLORS) + 1)), width: 2, dash: i < LINE_COLORS ? [] : [6, 4],
          points: { show: this.times.length < 3 }, value: (plot, _, series, at) => legendValue(plot, series, at, this.show),
        })),
      ],
    };
  }
}
