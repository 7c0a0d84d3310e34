// Tables that sort by a click on a heading and filter by words.

const FIRST_ROWS = 25;
const BADNESS = { REWIND: 6, STALL: 5, STOP: 4, ERR: 3, WARN: 2, OK: 1, UNKNOWN: 0 };

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

// The color class of a status. STOP, STALL and REWIND of partitions look like a group's ERR.
function statusClass(status) {
  return ["STOP", "STALL", "REWIND"].includes(status) ? "ERR" : status in BADNESS ? status : "UNKNOWN";
}

// The value of a column. least: key of a lower bound, used if the value is unknown.
function valueOf(column, row) {
  return row[column.key] ?? row[column.least] ?? null;
}

function cellOf(column, row) {
  const kind = KINDS[column.kind], value = valueOf(column, row);
  const cell = element("td", [kind.className, column.minor && "minor"].filter(Boolean).join(" "));
  if (column.kind === "spark") cell.append(sparkline(value));
  else if (value === null) cell.textContent = column.never?.(row) ? "never" : "–";
  else if (column.kind === "status") cell.append(element("span", "status " + statusClass(value), value));
  else cell.textContent = (value === row[column.key] ? "" : "> ") + printable(kind.show(value));
  return cell;
}

// Nulls sort last in both directions.
function compare(a, b, descending) {
  if (a === null || b === null) return (a === null) - (b === null);
  const order = a < b ? -1 : a > b ? 1 : 0;
  return descending ? -order : order;
}

function sortKey(column, row) {
  const value = valueOf(column, row);
  if (column.kind === "status") return BADNESS[value] ?? -1;
  return column.kind === "spark" ? value.findLast?.((v) => v !== null) ?? null : value;
}

class RowTable {
  // place: parent element. changed: called with the matching rows, without the limit. `minor` columns are hidden until
  // "all columns" is pressed.
  constructor(place, label, columns, rows, changed) {
    this.columns = columns;
    this.rows = rows;
    this.changed = changed || (() => {});
    this.sorted = null;
    this.limit = FIRST_ROWS;
    this.words = [];
    this.notOk = false;
    this.body = element("tbody");
    this.table = element("table", "rows");
    this.table.append(element("caption", "unseen", label), this.head(), this.body);
    const scroll = element("div", "scroll");
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", label);
    scroll.append(this.table);
    this.more = element("button", "more", "show all");
    this.more.addEventListener("click", () => { this.limit = Infinity; this.draw(); });
    place.append(this.tools(label), scroll, this.more);
    this.draw();
  }

  tools(label) {
    this.filter = element("input");
    this.filter.type = "search";
    this.filter.placeholder = "filter " + label;
    this.filter.setAttribute("aria-label", "filter " + label);
    this.filter.addEventListener("input", () => this.search(this.filter.value));
    this.filter.addEventListener("keydown", (event) => { if (event.key === "Escape") this.look(""); });
    this.count = element("span", "dim");
    this.count.setAttribute("role", "status");
    const tools = element("div", "tools");
    tools.append(this.filter);
    if (this.columns.some((column) => column.kind === "status"))
      tools.append(this.toggle("not OK only", (pressed) => { this.notOk = pressed; this.draw(); }));
    if (this.columns.some((column) => column.minor))
      tools.append(this.toggle("all columns", (pressed) => this.table.classList.toggle("wide", pressed)));
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

  head() {
    const line = element("tr");
    this.titles = this.columns.map((column) => {
      const title = element("th", [KINDS[column.kind].className === "right" && "right", column.minor && "minor"].filter(Boolean).join(" "));
      title.scope = "col";
      const button = element("button", "", column.title);
      button.type = "button";
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
    this.sorted = { column, descending: again ? !this.sorted.descending : !text && column.kind !== "eta" };
    this.titles.forEach((title, i) => {
      if (this.columns[i] === column) title.setAttribute("aria-sort", this.sorted.descending ? "descending" : "ascending");
      else title.removeAttribute("aria-sort");
    });
    this.draw();
  }

  // Keep rows in which every word occurs in a name or state.
  search(text) {
    this.words = text.toLowerCase().split(/\s+/).filter(Boolean);
    this.draw();
  }

  // Set the filter text.
  look(text) {
    this.filter.value = text;
    this.search(text);
  }

  matching() {
    const texts = this.columns.filter((c) => ["text", "plain", "status"].includes(c.kind)).map((c) => c.key);
    const matches = this.rows.filter((row) => {
      if (this.notOk && row.status === "OK") return false;
      const all = texts.map((key) => String(row[key] ?? "").toLowerCase());
      return this.words.every((word) => all.some((text) => text.includes(word)));
    });
    if (this.sorted) {
      const { column, descending } = this.sorted;
      matches.sort((a, b) => compare(sortKey(column, a), sortKey(column, b), descending));
    }
    return matches;
  }

  draw() {
    const matches = this.matching(), visible = matches.slice(0, this.limit);
    const lines = visible.map((row) => {
      const line = element("tr");
      line.append(...this.columns.map((column) => cellOf(column, row)));
      return line;
    });
    this.body.replaceChildren(...lines);
    this.count.textContent = formatCount(visible.length) + " of " + formatCount(this.rows.length);
    this.more.hidden = visible.length === matches.length;
    this.more.textContent = "show all " + formatCount(matches.length);
    this.changed(matches);
  }
}
