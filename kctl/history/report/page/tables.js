// Sorting by a click on a heading, and filters by words, for the tables of the page. A table has up to two parts: rows that
// need attention, and healthy rows in a closed <details>.

const FIRST_ROWS = 25;
const BADNESS = { REWIND: 6, STALL: 5, STOP: 4, ERR: 3, WARN: 2, OK: 1, UNKNOWN: 0 };
const TEXTS = ["text", "plain", "status"], UNKNOWN = "–";

// A line through the known values. CSS sets its size.
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

// Nulls sort last in both directions.
function compare(a, b, descending) {
  if (a === null || b === null) return (a === null) - (b === null);
  const order = a < b ? -1 : a > b ? 1 : 0;
  return descending ? -order : order;
}

// A line of a table with its values. least: key of a lower bound, used if the value is unknown.
class Line {
  constructor(node, row, columns) {
    this.node = node;
    this.row = row;
    this.words = columns.filter((c) => TEXTS.includes(c.kind)).map((c) => this.text(c).toLowerCase()).join("\n");
    this.drawn = false;
  }

  text(column) {
    return this.node.cells[column.place].textContent;
  }

  sortKey(column) {
    if (column.kind === "status") return BADNESS[this.text(column)] ?? -1;
    if (TEXTS.includes(column.kind)) return this.text(column) === UNKNOWN ? null : this.text(column);
    const value = this.row[column.key] ?? this.row[column.least] ?? null;
    return column.kind === "spark" ? value.findLast?.((v) => v !== null) ?? null : value;
  }

  // Draw the sparklines when the line is shown for the first time.
  draw(columns) {
    if (this.drawn) return;
    this.drawn = true;
    for (const column of columns.filter((c) => c.kind === "spark")) this.node.cells[column.place].append(sparkline(this.row[column.key]));
  }
}

class RowTable {
  // place: parent element. rows: values by data-row. changed: called with the matching rows of both parts, without the
  // limit; of the healthy part only if it is open. `minor` columns are hidden until "all columns" is pressed.
  constructor(place, label, rows, changed) {
    this.changed = changed || (() => {});
    this.sorted = null;
    this.limit = FIRST_ROWS;
    this.words = [];
    this.healthy = place.querySelector("details");
    this.tables = [...place.querySelectorAll("table")];
    const first = this.tables.length ? [...this.tables[0].tHead.rows[0].cells] : [];
    this.columns = first.map((title, place) => ({ ...title.dataset, place, minor: title.classList.contains("minor") }));
    this.parts = this.tables.map((table) => ({
      body: table.tBodies[0], healthy: table.closest("details") !== null,
      lines: [...table.tBodies[0].rows].map((node) => new Line(node, rows[node.dataset.row], this.columns)),
    }));
    this.titles = this.tables.flatMap((table) => this.head(table));
    this.more = element("button", "more", "show all");
    this.more.addEventListener("click", () => { this.limit = Infinity; this.draw(); });
    if (this.tables.length) {
      place.prepend(this.tools(label));
      place.querySelector(".scroll").after(this.more);
    }
    this.healthy?.addEventListener("toggle", () => this.draw());
    this.draw();
  }

  tools(label) {
    this.filter = element("input");
    this.filter.type = "search";
    this.filter.placeholder = "filter " + label;
    this.filter.setAttribute("aria-label", "filter " + label);
    this.filter.addEventListener("input", () => this.search(this.filter.value));
    this.filter.addEventListener("keydown", (event) => { if (event.key === "Escape") this.filterBy(""); });
    this.count = element("span", "dim");
    this.count.setAttribute("role", "status");
    const tools = element("div", "tools");
    tools.append(this.filter);
    if (this.columns.some((column) => column.minor))
      tools.append(this.toggle("all columns", (pressed) => this.tables.forEach((table) => table.classList.toggle("wide", pressed))));
    tools.append(this.count);
    return tools;
  }

  toggle(text, change) {
    const button = element("button", "toggle", text);
    button.type = "button";
    button.setAttribute("aria-pressed", "false");
    button.addEventListener("click", () => {
      const pressed = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(pressed));
      change(pressed);
    });
    return button;
  }

  head(table) {
    return [...table.tHead.rows[0].cells].map((title, place) => {
      const button = element("button", "", title.textContent), column = this.columns[place];
      button.type = "button";
      button.addEventListener("click", () => this.sort(column));
      title.replaceChildren(button);
      return { title, column };
    });
  }

  sort(column) {
    const again = this.sorted && this.sorted.column === column;
    const ascending = ["text", "plain", "eta"].includes(column.kind);
    this.sorted = { column, descending: again ? !this.sorted.descending : !ascending };
    for (const { title, column: other } of this.titles) {
      if (other === column) title.setAttribute("aria-sort", this.sorted.descending ? "descending" : "ascending");
      else title.removeAttribute("aria-sort");
    }
    this.draw();
  }

  // Keep rows in which every word occurs in a name or state. Matching healthy rows are shown.
  search(text) {
    this.words = text.toLowerCase().split(/\s+/).filter(Boolean);
    if (this.healthy) this.healthy.open = this.words.length > 0 && this.parts.some((part) => part.healthy && this.matching(part).length);
    this.draw();
  }

  // Set the filter text.
  filterBy(text) {
    if (!this.filter) return;
    this.filter.value = text;
    this.search(text);
  }

  matching(part) {
    const matches = part.lines.filter((line) => this.words.every((word) => line.words.includes(word)));
    if (this.sorted) {
      const { column, descending } = this.sorted;
      matches.sort((a, b) => compare(a.sortKey(column), b.sortKey(column), descending));
    }
    return matches;
  }

  draw() {
    const rows = { attention: [], healthy: [] };
    this.more.hidden = true;
    for (const part of this.parts) {
      const matches = this.matching(part), visible = part.healthy ? matches : matches.slice(0, this.limit);
      part.body.replaceChildren(...visible.map((line) => line.node));
      if (!part.healthy || this.healthy.open) visible.forEach((line) => line.draw(this.columns));
      rows[part.healthy ? "healthy" : "attention"] = matches.map((line) => line.row);
      if (visible.length === matches.length) continue;
      this.more.hidden = false;
      this.more.textContent = "show all " + formatCount(matches.length);
    }
    if (this.count) this.showCount(rows.attention.length + rows.healthy.length);
    this.changed(rows.attention, rows.healthy);
  }

  showCount(matches) {
    const all = this.parts.reduce((sum, part) => sum + part.lines.length, 0);
    this.count.textContent = this.words.length ? formatCount(matches) + " of " + formatCount(all) : "";
  }
}
