// Tables that can be sorted by a click on a title, and filtered by words.

const FIRST_ROWS = 100;
const BADNESS = { REWIND: 6, STALL: 5, STOP: 4, ERR: 3, WARN: 2, OK: 1, UNKNOWN: 0 };

// A line of the known values, in a box that has no size of its own.
function sparkline(series) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "spark");
  svg.setAttribute("viewBox", "0 0 100 20");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  const known = series.filter((v) => v !== null);
  if (!known.length) return svg;
  const low = Math.min(...known), high = Math.max(...known), step = 100 / Math.max(series.length - 1, 1);
  let line = [];
  const close = () => {
    if (!line.length) return;
    if (line.length === 1) line.push([Math.min(line[0][0] + 1, 100), line[0][1]]);
    const drawn = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
    drawn.setAttribute("points", line.map((p) => p.join(",")).join(" "));
    svg.append(drawn);
    line = [];
  };
  series.forEach((v, i) => {
    if (v === null) close();
    else line.push([+(i * step).toFixed(2), +(high === low ? 18 : 18 - (16 * (v - low)) / (high - low)).toFixed(2)]);
  });
  close();
  return svg;
}

function cellOf(column, row) {
  const kind = KINDS[column.kind], value = row[column.key];
  const cell = element("td", kind.className);
  if (column.kind === "spark") cell.append(sparkline(value));
  else if (value === null || value === undefined) cell.textContent = column.none || "–";
  else if (column.kind === "status") cell.append(element("span", "status " + (value in BADNESS ? value : ""), value));
  else cell.textContent = printable(kind.show(value));
  return cell;
}

// Nulls stay at the end, whichever way.
function compare(a, b, descending) {
  if (a === null || b === null) return (a === null) - (b === null);
  const order = a < b ? -1 : a > b ? 1 : 0;
  return descending ? -order : order;
}

function sortKey(column, row) {
  const value = row[column.key];
  if (column.kind === "status") return BADNESS[value] ?? -1;
  return column.kind === "spark" ? value.findLast?.((v) => v !== null) ?? null : value;
}

class RowTable {
  // place: where it goes; changed: is told of the rows as they are shown, first without the limit.
  constructor(place, label, columns, rows, changed) {
    this.columns = columns;
    this.rows = rows;
    this.changed = changed || (() => {});
    this.sorted = null;
    this.limit = FIRST_ROWS;
    this.words = [];
    this.filter = element("input");
    this.filter.type = "search";
    this.filter.placeholder = "filter " + label;
    this.filter.setAttribute("aria-label", "filter " + label);
    this.filter.addEventListener("input", () => this.search(this.filter.value));
    this.count = element("span", "dim");
    const tools = element("div", "tools");
    tools.append(this.filter, this.count);
    this.body = element("tbody");
    this.more = element("button", "more", "show all");
    this.more.addEventListener("click", () => { this.limit = Infinity; this.draw(); });
    const table = element("table", "rows");
    table.append(this.head(), this.body);
    const scroll = element("div", "scroll");
    scroll.append(table);
    place.append(tools, scroll, this.more);
    this.draw();
  }

  head() {
    const line = element("tr");
    this.titles = this.columns.map((column) => {
      const title = element("th", KINDS[column.kind].className === "right" ? "right" : "");
      title.scope = "col";
      const button = element("button", "", column.title);
      button.addEventListener("click", () => this.sort(column));
      title.append(button);
      line.append(title);
      return title;
    });
    const head = element("thead");
    head.append(line);
    return head;
  }

  sort(column) {
    const again = this.sorted && this.sorted.column === column;
    const text = column.kind === "text" || column.kind === "plain";
    this.sorted = { column, descending: again ? !this.sorted.descending : !text };
    this.titles.forEach((title, i) => {
      if (this.columns[i] === column) title.setAttribute("aria-sort", this.sorted.descending ? "descending" : "ascending");
      else title.removeAttribute("aria-sort");
    });
    this.draw();
  }

  // A row stays when each word is in one of its names or states.
  search(text) {
    this.words = text.toLowerCase().split(/\s+/).filter(Boolean);
    this.draw();
  }

  matching() {
    const texts = this.columns.filter((c) => ["text", "plain", "status"].includes(c.kind)).map((c) => c.key);
    const found = this.rows.filter((row) => {
      const all = texts.map((key) => String(row[key] ?? "").toLowerCase());
      return this.words.every((word) => all.some((text) => text.includes(word)));
    });
    if (this.sorted) {
      const { column, descending } = this.sorted;
      found.sort((a, b) => compare(sortKey(column, a), sortKey(column, b), descending));
    }
    return found;
  }

  draw() {
    const found = this.matching(), shown = found.slice(0, this.limit);
    const lines = shown.map((row) => {
      const line = element("tr");
      line.append(...this.columns.map((column) => cellOf(column, row)));
      return line;
    });
    this.body.replaceChildren(...lines);
    this.count.textContent = shown.length + " of " + this.rows.length;
    this.more.hidden = shown.length === found.length;
    this.more.textContent = "show all " + found.length;
    this.changed(found);
  }
}
