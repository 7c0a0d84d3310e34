// Formatting of values. Text from the cluster goes into text nodes and attributes only, never into HTML.

// As kctl.base.text.printable: escape characters that could reorder or hide text.
const UNSAFE = new RegExp("[\\u0000-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ud800-\\udfff" +
  "\\u00ad\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200d\\u2060-\\u2065\\u206a-\\u206f\\u3164\\ufe00-\\ufe0f" +
  "\\ufeff\\uffa0\\ufff0-\\ufffb\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}]", "gu");

function printable(text) {
  return String(text).replace(UNSAFE, (c) => {
    const code = c.codePointAt(0).toString(16);
    return code.length > 4 ? "\\U" + code.padStart(8, "0") : "\\u" + code.padStart(4, "0");
  });
}

function element(name, className, text) {
  const node = document.createElement(name);
  if (className) node.className = className;
  if (text !== undefined && text !== null) node.textContent = printable(text);
  return node;
}

function formatCount(value) {
  return Math.round(value).toLocaleString("en-US");
}

function formatSize(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let value = bytes, unit = 0;
  while (Math.abs(value) >= 999.5 && unit < units.length - 1) { value /= 1000; unit += 1; }
  return (unit === 0 || Math.abs(value) >= 99.95 ? Math.round(value) : Number(value.toPrecision(3))) + " " + units[unit];
}

// As kctl.base.units.format_duration: at most two units.
function formatDuration(ms) {
  if (ms < 1000) return Math.round(ms) + "ms";
  let seconds = Math.floor(ms / 1000);
  const parts = [];
  for (const [unit, size] of [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]]) {
    const count = Math.floor(seconds / size);
    seconds -= count * size;
    if (count) parts.push(count + unit); else if (parts.length) break;
  }
  return parts.slice(0, 2).join(" ");
}

function formatTime(iso) {
  return iso.slice(0, 19).replace("T", " ");
}

function formatMoment(seconds) {
  return formatTime(new Date(seconds * 1000).toISOString());
}

function formatGrowth(perHour) {
  return (perHour > 0 ? "+" : "") + formatSize(Math.round(perHour)) + "/h";
}

function formatShare(share) {
  return (100 * share).toFixed(share >= 0.1 || share === 0 ? 0 : 1) + "%";
}
