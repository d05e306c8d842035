"use strict";
/* The views of tables: all of them, one with its files and versions, and two versions compared. */
(() => {
  const { h, count, size, time, link, badge, tile, grid, filter, choice, section, facts, command } = Silt;
  const SMALL = 8;
  const FINDINGS = ["small files", "dead files", "overlapping files", "damaged", "empty"];

  function findings(table) {
    const found = [];
    if (table.problem || table.doubt) found.push("damaged");
    if (table.small && table.small[0] - table.small[1] >= SMALL) found.push("small files");
    if (table.dead && table.dead[2]) found.push("dead files");
    if (table.overlaps.some((each) => each.files >= SMALL && each.mean > Math.max(4, each.files / 4))) found.push("overlapping files");
    if (table.rows === 0) found.push("empty");
    return found;
  }

  const last = (table) => (table.commits.length ? table.commits[table.commits.length - 1] : null);

  function all(model, query) {
    model.tables.forEach((table) => { table.found = table.found || findings(table); });
    const place = h("div");
    const draw = () => {
      const wanted = (query.get("q") || "").toLowerCase();
      const state = query.get("state");
      const chosen = model.tables.filter((each) => each.name.toLowerCase().includes(wanted) && (!state || each.found.includes(state)));
      place.replaceChildren(list(chosen));
    };
    draw();
    const known = FINDINGS.filter((each) => model.tables.some((table) => table.found.includes(each)));
    return [h("h1", {}, "Tables"), h("div", { class: "filters" }, filter("Find", "q", query, draw), choice("Only with", "state", query, known, draw)), place];
  }

  function list(tables) {
    const number = (name, field, show) => ({ name, number: true, value: (each) => each[field] ?? null, cell: (each) => show(each[field] ?? null) });
    return grid([
      { name: "table", value: (each) => each.name, cell: (each) => link(["table", each.name], each.name) },
      number("rows", "rows", count), number("files", "files", count), number("size", "bytes", size), number("version", "version", count),
      { name: "last commit (UTC)", tight: true, value: (each) => last(each) && last(each).ms, cell: (each) => time(last(each) && last(each).ms) },
      { name: "by", value: (each) => (last(each) && (last(each).node || last(each).engine)) || "" },
      { name: "dead", number: true, value: (each) => (each.dead ? each.dead[1] : 0), cell: (each) => (each.dead ? size(each.dead[1]) : "") },
      { name: "findings", value: (each) => each.found.join(", "), cell: (each) => each.found.map((found) => [badge(found), " "]) },
    ], tables, { empty: "No table." });
  }

  function one(model, name, query) {
    const table = model.tableByName.get(name);
    if (!table) return [h("h1", {}, "Unknown table"), h("p", {}, `There is no table ${name} on this page.`)];
    if (table.problem) return [h("h1", {}, table.name, " ", badge("damaged")), h("pre", {}, table.problem)];
    const node = model.nodeByTable.get(table.name);
    return [h("h1", {}, table.name), table.definition.comment ? h("p", {}, table.definition.comment) : null,
      table.doubt ? h("p", { class: "warning" }, table.doubt) : null,
      h("div", { class: "tiles" }, tile("rows", count(table.rows)), tile("files", count(table.files)), tile("size", size(table.bytes)),
        tile("version", count(table.version), time(last(table) && last(table).ms)),
        node ? tile("model", h("a", { href: `#/graph?focus=${encodeURIComponent(node.id)}` }, node.name), node.state) : null),
      section("Rows over time", Silt.charts.steps("rows after each version", table.commits.map((each) => ({ ms: each.ms, value: each.rows, label: `v${each.version}: ${count(each.rows)} rows` })), count)),
      h("div", { class: "columns" }, section("Files", files(model, table)), section("Maintenance", maintenance(table))),
      section("Clustering", clustering(table)), partitions(table),
      section("Versions", versions(table)), section("Two versions compared", compare(table, query)),
      section("Columns", columns(model, table, node)), section("Definition", definition(table))];
  }

  function files(model, table) {
    const bounds = model.bounds;
    const label = (at) => (at === bounds.length ? `≥ ${size(bounds[at - 1])}` : at ? `< ${size(bounds[at])}` : `< ${size(bounds[0])}`);
    if (!table.files) return h("p", { class: "quiet" }, "It has no file.");
    return Silt.charts.rows("files by size", table.sizes.map(([number, bytes], at) => ({ name: label(at), value: number, label: number ? `${count(number)}, ${size(bytes)}` : "" })), count);
  }

  const argument = (name) => name.split(".").slice(-2).join(".");
  /* YAML in single quotes of the shell; a name with other characters is quoted as JSON, which YAML reads. */
  const plain = (text) => (/^[\w.]+$/.test(text) ? text : JSON.stringify(text));
  const shell = (text) => `'${text.replace(/'/g, "'\\''")}'`;
  const operation = (name, args) => `dbt run-operation ${name} --args ${shell(`{${args}}`)}`;

  function maintenance(table) {
    const parts = [];
    const zorder = table.overlaps.filter((each) => each.files >= SMALL && each.mean > Math.max(4, each.files / 4)).map((each) => each.column);
    const name = plain(argument(table.name));
    if (table.small) {
      parts.push(h("p", {}, `${count(table.small[0])} files of ${size(table.small[2])} would become ${count(table.small[1])}:`), command(operation("silt_optimize", `table: ${name}`)));
    } else parts.push(h("p", {}, "No small files that OPTIMIZE would pack."));
    if (zorder.length) parts.push(h("p", {}, "Ranges of files overlap; if the files are ordered, a look-up of a key reads fewer of them:"), command(operation("silt_optimize", `table: ${name}, zorder_by: [${zorder.map(plain).join(", ")}]`)));
    if (table.dead) {
      const [number, bytes, due, dueBytes] = table.dead;
      parts.push(h("p", {}, `${count(number)} files of ${size(bytes)} are no longer in the table, according to the log; ${due ? `${count(due)} of ${size(dueBytes)} are older than the retention:` : "VACUUM deletes them when they are older than the retention:"}`), command(operation("silt_vacuum", `table: ${name}`)));
    } else parts.push(h("p", {}, "No dead files."));
    return parts;
  }

  function clustering(table) {
    if (!table.overlaps.length) return h("p", { class: "quiet" }, table.files < 2 ? "With fewer than two files there is nothing to cluster." : "The files have no statistics of a key.");
    return table.overlaps.map((each) => h("div", {}, h("h3", {}, each.column, table.clustered.includes(each.column) ? " (clustered by it)" : ""),
      h("p", {}, `The range of a file overlaps ${each.mean} of ${count(each.files)} files on average, itself included; a value may be in ${count(each.most)} files at most. 1 is perfect.`),
      Silt.charts.ranges(`ranges of ${each.column} in files, by rank`, each.ranges)));
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

  function versions(table) {
    const number = (name, field) => ({ name, number: true, value: (each) => each[field], cell: (each) => count(each[field]) });
    const more = table.leftOut ? h("p", { class: "quiet" }, `${count(table.leftOut)} older versions are left out.`) : null;
    return [grid([
      { name: "version", number: true, value: (each) => each.version }, { name: "committed (UTC)", tight: true, value: (each) => each.ms, cell: (each) => time(each.ms) },
      { name: "operation", value: (each) => each.operation || "" }, number("inserted", "inserted"), number("updated", "updated"), number("deleted", "deleted"),
      { name: "files", tight: true, value: (each) => each.filesAdded, cell: (each) => (Silt.isKnown(each.filesAdded) ? `+${count(each.filesAdded)} −${count(each.filesRemoved)}` : Silt.UNKNOWN) },
      { name: "bytes", tight: true, value: (each) => each.bytesAdded, cell: (each) => (Silt.isKnown(each.bytesAdded) ? `+${size(each.bytesAdded)} −${size(each.bytesRemoved)}` : Silt.UNKNOWN) },
      number("rows after", "rows"),
      { name: "run", tight: true, value: (each) => each.run || "", cell: (each) => (each.run ? link(["run", each.run], Silt.short(each.run, 12), { title: each.run }) : Silt.UNKNOWN) },
      { name: "who", value: (each) => each.node || each.engine || "", cell: (each) => [each.node || each.engine || Silt.UNKNOWN, each.batch ? ` ${each.batch}` : ""] },
      { name: "note", value: (each) => each.note || "", cell: (each) => [each.note || "", again(each), each.undoneBy ? ` rolled back by v${each.undoneBy}` : "", each.rolledBack ? ` rolls back ${each.rolledBack}` : ""] },
    ], [...table.commits].reverse(), { most: 50, mark: (each) => (each.undoneBy ? "undone" : null) }), more];
  }

  const again = (each) => (each.retries || each.reruns ? ` tried again ${count((each.retries || 0) + (each.reruns || 0))} times` : "");

  function compare(table, query) {
    if (table.commits.length < 2) return h("p", { class: "quiet" }, "There is one version.");
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
    const outcome = (test) => { const found = model.results && model.results.byNode.get(test.id); return found ? found.state : null; };
    const shown = (test) => [h("span", { class: "test" }, test.kind, outcome(test) === "failed" ? badge("failed") : ""), " "];
    const whole = node ? node.tests.filter((test) => !test.column) : [];
    return [grid([{ name: "column", value: (each) => each.name }, { name: "type", value: (each) => each.type + (each.required ? " not null" : "") },
      { name: "comment", value: (each) => each.comment || (node && node.columns.get(each.name.toLowerCase())) || "" },
      { name: "tests", cell: (each) => tests(each.name).map(shown) }, { name: "generated as", value: (each) => each.generated || "" }], table.definition.columns),
    whole.length ? h("p", {}, "Tests of the whole table: ", whole.map(shown)) : null];
  }

  function definition(table) {
    const { properties, keys, partitioned } = table.definition;
    return facts([["partitioned by", partitioned.join(", ")], ["clustered by", table.clustered.join(", ")], ["features", table.features.join(", ")],
      ...Object.entries(keys), ...Object.entries(properties)]);
  }

  Object.assign(Silt, { tablesView: all, tableView: one });
})();
