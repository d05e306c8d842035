"use strict";
/* The view of all tables. */
(() => {
  const { h, count, size, link, badge, grid, filter, choice, age } = Silt;
  const FINDINGS = ["damaged", "small files", "unused files", "overlapping files", "empty"];

  const last = (table) => (table.commits.length ? table.commits[table.commits.length - 1] : null);
  const isChosen = (found, state) => !state || found.includes(state) || (state === "maintenance" && found.some((each) => each.endsWith(" files")));

  function view(model, query) {
    const all = model.tables.map((table) => ({ ...table, found: Silt.findings(table) }));
    const place = h("div");
    const draw = () => {
      const wanted = (query.get("q") || "").toLowerCase();
      place.replaceChildren(list(model, all.filter((each) => each.name.toLowerCase().includes(wanted) && isChosen(each.found, query.get("state")))));
    };
    draw();
    const known = FINDINGS.filter((each) => all.some((table) => table.found.includes(each)));
    const choices = all.some((table) => isChosen(table.found, "maintenance")) ? [["maintenance", "any maintenance"], ...known] : known;
    return [h("h1", {}, "Tables"), h("div", { class: "filters" }, filter("Find", "q", query, draw), choice("Only with", "state", query, choices, draw)), place];
  }

  /* The writer of a commit: a node, or the program of another writer. */
  const writer = (model, commit) => (!commit ? null : commit.node ? Silt.nodeLink(model, commit.node) : commit.engine);

  function list(model, tables) {
    const number = (name, field, show) => ({ name, number: true, value: (each) => each[field] ?? null, cell: (each) => show(each[field] ?? null) });
    return grid([
      { name: "table", value: (each) => each.name, cell: (each) => link(["table", each.name], Silt.tableName(model, each.name), { title: each.name }) },
      { name: "findings", value: (each) => (each.found.length ? each.found.join(", ") : "~"), cell: (each) => (each.found.length ? each.found.map((found) => [badge(found), " "]) : badge("fine")) },
      number("rows", "rows", count), number("files", "files", count), number("size", "bytes", size), number("version", "version", count),
      { name: "last commit", tight: true, value: (each) => last(each) && -last(each).ms, cell: (each) => (last(each) ? age(last(each).ms) : Silt.UNKNOWN) },
      { name: "by", optional: true, value: (each) => (last(each) && (last(each).node || last(each).engine)) || "", cell: (each) => writer(model, last(each)) },
      { name: "unused", hint: "files that belong only to earlier versions; vacuum deletes them after the retention", number: true, optional: true, value: (each) => (each.dead ? each.dead[1] : 0), cell: (each) => (each.dead ? size(each.dead[1]) : Silt.UNKNOWN) },
    ], [...tables].sort((one, other) => Number(other.found.length > 0) - Number(one.found.length > 0)), { empty: "No table.", label: "tables" });
  }

  Object.assign(Silt, { tablesView: view, lastCommit: last, writer });
})();
