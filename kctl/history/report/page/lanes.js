// Status timelines and bars, as plain elements.

const MAX_LANES = 40;
const MAX_BARS = 10;

// The color class of a status.
function statusClass(status) {
  return status in BADNESS ? status : "UNKNOWN";
}

// The label of a lane for screen readers.
function laneLabel(row, times) {
  const known = row.timeline.filter((part) => part.status !== null);
  const texts = known.map((part) => part.status + " from " + formatMoment(times[part.first]));
  return printable(row.group) + ": " + (texts.join(", ") || "unknown");
}

function laneOf(row, span, times) {
  const lane = element("div", "lane"), label = element("div", "label", row.group), track = element("div", "track");
  label.title = printable(row.group);
  track.setAttribute("role", "img");
  track.setAttribute("aria-label", laneLabel(row, times));
  for (const part of row.timeline) {
    if (part.status === null) continue;
    const piece = element("i", statusClass(part.status));
    piece.style.left = (100 * part.first) / span.buckets + "%";
    piece.style.width = (100 * part.count) / span.buckets + "%";
    piece.title = part.status + " from " + formatMoment(times[part.first]);
    track.append(piece);
  }
  lane.append(label, track);
  return lane;
}

function drawTimeline(place, span, rows) {
  if (!rows.length) return place.replaceChildren();
  const times = bucketTimes(span);
  const lanes = rows.slice(0, MAX_LANES).map((row) => laneOf(row, span, times));
  const ends = element("div", "ends");
  ends.append(element("span", "", formatTime(span.from_at)), element("span", "", formatTime(span.to_at) + " UTC"));
  const key = element("div", "key");
  for (const status of ["OK", "WARN", "ERR", "UNKNOWN"]) {
    const item = element("span", "", "");
    item.append(element("i", status), document.createTextNode(status === "UNKNOWN" ? "unknown" : status));
    key.append(item);
  }
  place.replaceChildren(element("h3", "", "Status over time"), ...lanes, ends, key);
  if (rows.length > MAX_LANES) place.append(element("p", "dim", "First " + MAX_LANES + " of " + formatCount(rows.length) + " groups."));
}

// The largest values as bars. max: the value of a full-length bar, 1 for shares. Negative values have no bar.
function drawBars(place, title, rows, name, value, show, max) {
  const known = rows.filter((row) => value(row) !== null && value(row) !== undefined);
  known.sort((a, b) => value(b) - value(a));
  const largest = Math.max(max || 0, known.length ? value(known[0]) : 0);
  const lanes = known.slice(0, MAX_BARS).map((row) => {
    const lane = element("div", "lane"), track = element("div", "track"), label = element("div", "label", name(row));
    label.title = printable(name(row));
    const amount = value(row), piece = element("i", max && amount >= 0.9 * max ? "full" : "");
    piece.style.width = (largest > 0 && amount > 0 ? Math.min((100 * amount) / largest, 100) : 0) + "%";
    track.append(piece);
    lane.append(label, track, element("div", "value", show(amount)));
    return lane;
  });
  if (!lanes.length) lanes.push(element("p", "dim", "unknown"));
  place.replaceChildren(element("h3", "", title), ...lanes);
  if (known.length > MAX_BARS) place.append(element("p", "dim", "Largest " + MAX_BARS + " of " + formatCount(known.length) + "."));
}
