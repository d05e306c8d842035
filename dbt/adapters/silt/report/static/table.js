"use strict";
/* The view of one table: its files, versions and columns, and two versions compared. */
(() => {
  const { h, count, many, size, time, badge, tile, grid, section, facts, command } = Silt;

  function view(model, name, query) {
    const table = model.tableByName.get(name);
    if (!table) return [h("h1", {}, "Unknown table"), h("p", {}, `No table ${name} is on this page.`)];
    if (table.problem) return [h("h1", {}, table.name, " ", badge("damaged")), h("pre", {}, table.problem)];
    const node = Silt.nodeOfTable(model, table);
    const last = Silt.lastCommit(table);
    return [h("h1", {}, table.name), table.definition.comment ? h("p", {}, table.definition.comment) : null,
      table.doubt ? h("p", { class: "warning" }, table.doubt) : null,
      h("div", { class: "tiles" }, tile("rows", count(table.rows)), tile(table.files === 1 ? "file" : "files", count(table.files)), tile("size", size(table.bytes)),
        tile("version", count(table.version), last ? [time(last.ms), " (", Silt.age(last.ms), ")"] : null),
        node ? tile("model", Silt.nodeLink(model, node.id), badge(node.state)) : null),
      h("div", { class: "columns" }, section("Rows over time", Silt.charts.steps("rows after each version", table.commits.map((each) => ({ ms: each.ms, value: each.rows, label: `v${each.version}: ${count(each.rows)} rows` })), count)),
        section("Files by size", files(model, table)), section("Maintenance", maintenance(table)), section("Order of the files", clustering(table))),
      partitions(table), section("Versions", versions(model, table)), section("Two versions compared", compare(table, query)),
      section("Columns", columns(model, table, node)), section("Definition", definition(table))];
  }

  function files(model, table) {
    const bounds = model.bounds;
    const label = (at) => (at === bounds.length ? `≥ ${size(bounds[at - 1])}` : at ? `< ${size(bounds[at])}` : `< ${size(bounds[0])}`);
    if (!table.files) return h("p", { class: "quiet" }, "It has no file.");
    const groups = table.sizes.map(([number, bytes], at) => ({ name: label(at), value: number, label: number ? `${many(number, "file")}, ${size(bytes)}` : "none" }));
    const used = groups.map((each, at) => (each.value ? at : -1)).filter((at) => at >= 0);
    return Silt.charts.rows("files by size", groups.slice(used[0], used[used.length - 1] + 1));
  }

  function maintenance(table) {
    return Silt.advice(table).map((each) => [h("p", {}, each.text), each.command ? command(each.command) : null]);
  }

  function clustering(table) {
    if (!table.overlaps.length) return h("p", { class: "quiet" }, table.files < 2 ? "One file needs no order." : "The files have no statistics of a key.");
    return table.overlaps.map((each) => h("div", {}, h("h3", {}, each.column, table.clustered.includes(each.column) ? " (clustered by it)" : ""),
      h("p", {}, spread(each)),
      Silt.charts.ranges(`ranges of ${each.column} in files, by rank`, each.ranges)));
  }

  /* How many files a look-up of one value reads. */
  function spread({ column, files, mean, most }) {
    if (most <= 1) return `No two files share values of ${column}: a look-up of one value reads a single file.`;
    const others = mean - 1;
    return `A look-up of one value of ${column} reads at most ${count(most)} of ${many(files, "file")}. The values of a file overlap those of ${others < 0.95 ? "less than one other file" : `${others.toFixed(1).replace(/\.0$/, "")} other file${others.toFixed(1) === "1.0" ? "" : "s"}`} on average.`;
  }

  function partitions(table) {
    if (!table.partitionCount) return null;
    const names = table.definition.partitioned;
    return section(`Partitions (${count(table.partitionCount)})`, grid([
      ...names.map((name, at) => ({ name, value: (each) => each[0][at], cell: (each) => each[0][at] ?? "null" })),
      { name: "files", number: true, value: (each) => each[1], cell: (each) => count(each[1]) },
      { name: "size", number: true, value: (each) => each[2], cell: (each) => size(each[2]) },
      { name: "rows", number: true, value: (each) => each[3], cell: (each) => count(each[3]) }], table.partitions, { most: 20 }));
  }

  function versions(model, table) {
    const more = table.leftOut ? h("p", { class: "quiet" }, `${many(table.leftOut, "older version")} ${table.leftOut === 1 ? "is" : "are"} left out.`) : null;
    const run = (each) => (!each.run ? Silt.UNKNOWN : model.runById.has(each.run) ? Silt.runLink(model.runById.get(each.run)) : h("span", { title: each.run }, Silt.shortId(each.run)));
    return [grid([
      { name: "version", number: true, value: (each) => each.version, cell: (each) => `v${each.version}` }, { name: "committed", tight: true, value: (each) => each.ms, cell: (each) => time(each.ms) },
      { name: "operation", value: (each) => each.operation || "" },
      { name: "rows", hint: "inserted, updated, deleted", number: true, value: (each) => Silt.total([each.inserted, each.updated, each.deleted]), cell: (each) => Silt.change(each.inserted, each.updated, each.deleted) },
      { name: "rows after", number: true, value: (each) => each.rows, cell: (each) => count(each.rows) },
      { name: "files", number: true, value: (each) => each.filesAdded, cell: (each) => Silt.change(each.filesAdded, null, each.filesRemoved) },
      { name: "bytes", number: true, value: (each) => each.bytesAdded, cell: (each) => Silt.change(each.bytesAdded, null, each.bytesRemoved, size) },
      { name: "run", optional: true, value: (each) => each.run || "", cell: run },
      { name: "who", value: (each) => each.node || each.engine || "", cell: (each) => [Silt.writer(model, each) || Silt.UNKNOWN, each.batch ? ` ${each.batch}` : ""] },
      { name: "note", wide: true, optional: true, value: noteOf, cell: noteOf },
    ], [...table.commits].reverse(), { most: 50, label: "versions", mark: (each) => (each.undoneBy ? "undone" : null) }), more];
  }

  function noteOf(each) {
    const again = (each.retries || 0) + (each.reruns || 0);
    return [each.note, again ? `tried again ${again === 1 ? "once" : `${count(again)} times`}` : "", each.undoneBy ? `rolled back by v${each.undoneBy}` : "",
      each.rolledBack ? `rolls back ${Silt.shortId(each.rolledBack)}` : ""].filter(Boolean).join("; ");
  }

  function compare(table, query) {
    if (table.commits.length < 2) return h("p", { class: "quiet" }, "Only one version is known.");
    const numbers = table.commits.map((each) => each.version);
    const place = h("div");
    const chosen = (name, fallback) => { const wanted = Number(query.get(name) ?? fallback); return numbers.includes(wanted) ? wanted : fallback; };
    const draw = () => place.replaceChildren(...difference(table, chosen("a", numbers[numbers.length - 2]), chosen("b", numbers[numbers.length - 1])));
    const pick = (name, fallback) => h("label", { class: "filter" }, name === "a" ? "from version" : "to version", h("select", { name, change: (event) => { query.set(name, event.target.value); Silt.keep(query); draw(); } },
      [...numbers].reverse().map((number) => h("option", { value: number, selected: number === chosen(name, fallback) }, `v${number}`))));
    draw();
    return [h("div", { class: "filters" }, pick("a", numbers[numbers.length - 2]), pick("b", numbers[numbers.length - 1])), place];
  }

  function difference(table, one, other) {
    const [from, to] = [Math.min(one, other), Math.max(one, other)].map((number) => table.commits.find((each) => each.version === number));
    const between = table.commits.filter((each) => each.version > from.version && each.version <= to.version);
    const line = (name, field, show) => ({ name, from: show(from[field]), to: show(to[field]), by: Silt.isKnown(from[field]) && Silt.isKnown(to[field]) ? signed(to[field] - from[field], show) : Silt.UNKNOWN });
    const sum = (name, field) => ({ name, from: "", to: "", by: count(Silt.total(between.map((each) => each[field]))) });
    const rows = [line("rows", "rows", count), line("files", "files", count), line("size", "bytes", size), sum("rows inserted", "inserted"), sum("rows updated", "updated"), sum("rows deleted", "deleted"), sum("files added", "filesAdded"), sum("files removed", "filesRemoved")];
    return [grid([{ name: "", value: (each) => each.name }, { name: `v${from.version}`, number: true, cell: (each) => each.from }, { name: `v${to.version}`, number: true, cell: (each) => each.to }, { name: "difference", number: true, cell: (each) => each.by }], rows),
      definitions(table.definitions[from.definition], table.definitions[to.definition])];
  }

  const signed = (value, show) => (!value ? show(0) : value < 0 ? `−${show(-value)}` : `+${show(value)}`);

  function definitions(from, to) {
    if (!from || !to) return h("p", { class: "quiet" }, "The log no longer has the definition of the older version.");
    const before = new Map(from.columns.map((each) => [each.name, each]));
    const after = new Map(to.columns.map((each) => [each.name, each]));
    const changes = [];
    after.forEach((each, name) => { const was = before.get(name); if (!was) changes.push(["column added", name, each.type]); else if (was.type !== each.type || was.comment !== each.comment || was.required !== each.required) changes.push(["column changed", name, `${spelled(was)} → ${spelled(each)}`]); });
    before.forEach((each, name) => { if (!after.has(name)) changes.push(["column removed", name, each.type]); });
    new Set([...Object.keys(from.properties), ...Object.keys(to.properties)]).forEach((name) => { if (from.properties[name] !== to.properties[name]) changes.push(["property", name, `${from.properties[name] ?? "not set"} → ${to.properties[name] ?? "not set"}`]); });
    return changes.length ? grid(["what", "name", "change"].map((name, at) => ({ name, value: (each) => each[at] })), changes) : h("p", { class: "quiet" }, "Columns and properties are the same.");
  }

  const spelled = (column) => [column.type, column.required ? "not null" : "", column.comment ? `“${column.comment}”` : ""].filter(Boolean).join(" ");

  function columns(model, table, node) {
    const tests = (name) => (node ? node.tests.filter((test) => test.column && test.column.toLowerCase() === name.toLowerCase()) : []);
    const outcome = (test) => { const found = model.newest.get(test.id); return found ? found.result.state : null; };
    const shown = (test) => [h("span", { class: "test", title: test.id }, test.kind, " ", ["failed", "warned"].includes(outcome(test)) ? badge(outcome(test)) : ""), " "];
    const whole = node ? node.tests.filter((test) => !test.column) : [];
    return [grid([{ name: "column", value: (each) => each.name }, { name: "type", value: (each) => each.type + (each.required ? " not null" : "") },
      { name: "comment", wide: true, optional: true, value: (each) => each.comment || (node && node.columns.get(each.name.toLowerCase())) || "" },
      { name: "tests", optional: true, value: (each) => tests(each.name).length, cell: (each) => tests(each.name).map(shown) }, { name: "generated as", optional: true, value: (each) => each.generated || "" }], table.definition.columns),
    whole.length ? h("p", {}, "Tests of the whole table: ", whole.map(shown)) : null];
  }

  function definition(table) {
    const { properties, keys, partitioned } = table.definition;
    return facts([["partitioned by", partitioned.join(", ")], ["clustered by", table.clustered.join(", ")], ["features", table.features.join(", ")],
      ...Object.entries(keys), ...Object.entries(properties)]);
  }

  Object.assign(Silt, { tableView: view });
})();
