"use strict";
/* Makes elements, and spells values. Every text becomes a text node: nothing in the data is ever markup. */
(() => {
  const SVG = "http://www.w3.org/2000/svg";

  function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (typeof value === "function") element.addEventListener(name, value);
      else element.setAttribute(name, value === true ? "" : String(value));
    }
    for (const child of children.flat(Infinity)) {
      if (child === null || child === undefined || child === false) continue;
      element.append(child instanceof Node ? child : document.createTextNode(String(child)));
    }
    return element;
  }

  const h = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);
  const s = (name, attributes, ...children) => fill(document.createElementNS(SVG, name), attributes, children);

  const UNKNOWN = "–";
  const isKnown = (value) => value !== null && value !== undefined;
  const count = (value) => (isKnown(value) ? value.toLocaleString("en-US") : UNKNOWN);

  function size(value) {
    if (!isKnown(value)) return UNKNOWN;
    const units = ["B", "KB", "MB", "GB", "TB"];
    let at = 0;
    let left = value;
    while (left >= 1000 && at < units.length - 1) { left /= 1000; at += 1; }
    return `${at ? left.toFixed(1) : left} ${units[at]}`;
  }

  function time(ms) {
    if (!ms) return UNKNOWN;
    const moment = new Date(ms);
    return Number.isNaN(moment.getTime()) ? UNKNOWN : moment.toISOString().slice(0, 19).replace("T", " ");
  }

  function took(ms) {
    if (!isKnown(ms)) return UNKNOWN;
    if (ms < 1000) return `${Math.round(ms)} ms`;
    const seconds = ms / 1000;
    if (seconds < 60) return `${seconds.toFixed(1)} s`;
    if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
    if (seconds < 172800) return `${(seconds / 3600).toFixed(1)} h`;
    return `${(seconds / 86400).toFixed(1)} days`;
  }

  const link = (parts, label, attributes) =>
    h("a", { href: `#/${parts.map(encodeURIComponent).join("/")}`, ...attributes }, label);
  const short = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
  const badge = (state) => h("span", { class: `badge ${state.replace(/ /g, "-")}` }, state);
  const tile = (label, value, more) => h("div", { class: "tile" }, h("b", {}, value), h("span", {}, label), more ? h("small", {}, more) : null);
  const facts = (pairs) => h("dl", {}, pairs.filter(([, value]) => isKnown(value) && value !== "").map(
    ([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));

  /* A table that is sorted by a click on a column. Columns: {name, value, cell, number}; value sorts, cell shows. */
  function grid(columns, rows, options = {}) {
    const most = options.most || 200;
    let shown = most;
    let by = options.by ?? null;
    let down = options.down ?? false;
    const body = h("tbody");
    const more = h("button", { type: "button", class: "more", click: () => { shown *= 5; draw(); } });
    const heads = columns.map((column, at) => h("th", { class: column.number ? "number" : null, scope: "col", "aria-sort": "none" },
      column.value ? h("button", { type: "button", click: () => { down = by === at ? !down : Boolean(column.number); by = at; draw(); } }, column.name) : column.name));
    function sorted() {
      if (by === null) return rows;
      const value = columns[by].value;
      const known = rows.filter((row) => isKnown(value(row)));
      const order = (one, other) => (one === other ? 0 : one < other ? -1 : 1);
      known.sort((one, other) => (down ? -1 : 1) * order(value(one), value(other)));
      return [...known, ...rows.filter((row) => !isKnown(value(row)))];
    }
    function draw() {
      heads.forEach((head, at) => head.setAttribute("aria-sort", at !== by ? "none" : down ? "descending" : "ascending"));
      body.replaceChildren(...sorted().slice(0, shown).map((row) => h("tr", { class: options.mark ? options.mark(row) : null },
        columns.map((column) => h("td", { class: column.number ? "number" : column.tight ? "tight" : null }, column.cell ? column.cell(row) : column.value(row))))));
      more.hidden = rows.length <= shown;
      more.textContent = `Show more of ${count(rows.length)}`;
    }
    draw();
    if (!rows.length) return h("p", { class: "quiet" }, options.empty || "Nothing.");
    return h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, heads)), body), more);
  }

  /* A field that filters: its text is kept in the address, so that a link or a reload shows the same. */
  function filter(label, name, query, change) {
    return h("label", { class: "filter" }, label, h("input", {
      type: "search", name, value: query.get(name) || "", input: (event) => {
        if (event.target.value) query.set(name, event.target.value); else query.delete(name);
        Silt.keep(query);
        change();
      } }));
  }

  function choice(label, name, query, values, change) {
    const chosen = query.get(name) || "";
    const options = [h("option", { value: "" }, "all"), ...values.map((value) => h("option", { value, selected: value === chosen }, value))];
    return h("label", { class: "filter" }, label, h("select", { name, change: (event) => {
      if (event.target.value) query.set(name, event.target.value); else query.delete(name);
      Silt.keep(query);
      change();
    } }, options));
  }

  const section = (title, ...children) => h("section", {}, h("h2", {}, title), children);
  const command = (text) => h("code", { class: "command" }, text);

  Object.assign(Silt, { h, s, count, size, time, took, link, short, badge, tile, facts, grid, filter, choice, section, command, isKnown, UNKNOWN });
})();
