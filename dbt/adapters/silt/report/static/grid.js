"use strict";
/* Tables that are sorted by a click, and the fields that filter them. */
(() => {
  const { h, count, isKnown } = Silt;
  const isEmpty = (value) => !isKnown(value) || value === "" || value === 0;

  function sorted(rows, column, isDown) {
    if (!column) return rows;
    const known = rows.filter((row) => isKnown(column.value(row)));
    const order = (one, other) => (one === other ? 0 : one < other ? -1 : 1);
    known.sort((one, other) => (isDown ? -1 : 1) * order(column.value(one), column.value(other)));
    return [...known, ...rows.filter((row) => !isKnown(column.value(row)))];
  }

  /* In a narrow window each row is a block with the names of its columns, so tables keep their roles by attributes. */
  function cell(column, row) {
    const shown = [column.cell ? column.cell(row) : column.value(row)].flat(Infinity).filter((each) => isKnown(each) && each !== "");
    const isBlank = !shown.length || (shown.length === 1 && shown[0] === Silt.UNKNOWN);
    const kinds = [column.number ? "number" : column.tight ? "tight" : column.wide ? `wide ${column.wide}` : "", isBlank ? "blank" : ""].filter(Boolean).join(" ");
    return h("td", { role: "cell", class: kinds || null, "data-name": column.name || null }, shown);
  }

  /* Columns: {name, value, cell, number, tight, wide, optional, hint}; value sorts, cell shows; an optional column is left out if it is empty. */
  function grid(all, rows, options = {}) {
    if (!rows.length) return h("p", { class: "quiet" }, options.empty || "Nothing.");
    const columns = all.filter((column) => !column.optional || rows.some((row) => !isEmpty(column.value(row))));
    let shown = options.most || 100;
    let by = null;
    let isDown = false;
    const sort = (column) => { isDown = by === column ? !isDown : Boolean(column.number); by = column; draw(); };
    const head = (column) => h("th", { role: "columnheader", class: column.number ? "number" : null, scope: "col", "aria-sort": "none", title: column.hint || null },
      column.value ? h("button", { type: "button", click: () => sort(column) }, column.name) : column.name);
    const heads = columns.map(head);
    const body = h("tbody", { role: "rowgroup" });
    const more = h("button", { type: "button", class: "more", click: () => { shown *= 5; draw(); } });
    function draw() {
      heads.forEach((each, at) => each.setAttribute("aria-sort", columns[at] !== by ? "none" : isDown ? "descending" : "ascending"));
      body.replaceChildren(...sorted(rows, by, isDown).slice(0, shown).map((row) =>
        h("tr", { role: "row", class: options.mark ? options.mark(row) : null }, columns.map((column) => cell(column, row)))));
      more.hidden = rows.length <= shown;
      more.textContent = `Show more of ${count(rows.length)}`;
    }
    draw();
    return h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": options.label || "table" },
      h("table", { role: "table" }, h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, heads)), body), more);
  }

  /* Keeps what was chosen in the address, so that a link or a reload shows the same. */
  function kept(name, query, change) {
    return (event) => {
      if (event.target.value) query.set(name, event.target.value); else query.delete(name);
      Silt.keep(query);
      change();
    };
  }

  const filter = (label, name, query, change) => h("label", { class: "filter" }, label,
    h("input", { type: "search", name, value: query.get(name) || "", input: kept(name, query, change) }));

  /* Values: texts, or pairs of a value and its text. */
  function choice(label, name, query, values, change) {
    if (!values.length) return null;
    const options = values.map((each) => (Array.isArray(each) ? each : [each, each]));
    const chosen = query.get(name) || "";
    return h("label", { class: "filter" }, label, h("select", { name, change: kept(name, query, change) }, h("option", { value: "" }, "all"),
      options.map(([value, text]) => h("option", { value, selected: value === chosen }, text))));
  }

  /* Counts of added, changed and removed things in one cell. */
  function change(added, changed, removed, show = count) {
    if (![added, changed, removed].some(isKnown)) return Silt.UNKNOWN;
    const found = [["+", added], ["~", changed], ["−", removed]].filter(([, value]) => value).map(([mark, value]) => `${mark}${show(value)}`);
    return found.join(" ") || "0";
  }

  Object.assign(Silt, { grid, filter, choice, change });
})();
