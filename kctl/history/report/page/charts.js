// Lines over time, by uPlot.

const MOST_LINES = 8, LINE_COLOURS = 4;

function style(name) {
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

// What a legend says: the value under the pointer, else the last one that is known.
function legendValue(plot, series, at, show) {
  const value = at === null || at === undefined ? plot.data[series].findLast?.((v) => v !== null) : plot.data[series][at];
  return value === null || value === undefined ? "–" : show(value);
}

// Series of the first rows, one colour each, the second four dashed; drawn anew when colours, the width or the rows
// change. Its left end is that of the status lanes below it.
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
    this.rows = rows.slice(0, MOST_LINES);
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
      legend: { markers: { dash: (_, series) => (series > LINE_COLOURS ? "dashed" : "solid") } },
      tzDate: (ts) => uPlot.tzDate(new Date(ts * 1000), "Etc/UTC"),
      scales: {
        // One pass alone would be drawn in the middle of years.
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
          label: printable(this.name(row)), stroke: style("--line-" + ((i % LINE_COLOURS) + 1)), width: 2, dash: i < LINE_COLOURS ? [] : [6, 4],
          points: { show: this.times.length < 3 }, value: (plot, _, series, at) => legendValue(plot, series, at, this.show),
        })),
      ],
    };
  }
}
