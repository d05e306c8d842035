"use strict";
/* Reads the data that document.py writes: gives its short fields their names and finds what belongs together. */
const Silt = {};

(() => {
  const COMMIT = ["version", "ms", "operation", "inserted", "updated", "deleted", "filesAdded", "filesRemoved",
    "bytesAdded", "bytesRemoved", "rows", "files", "bytes", "run", "node", "engine", "definition", "undoneBy",
    "retries", "reruns", "batch", "note", "rolledBack"];
  const COMMIT_TEXTS = ["operation", "run", "node", "engine", "batch", "note", "rolledBack"];

  const named = (names, values) => {
    const found = {};
    names.forEach((name, at) => { found[name] = values[at] ?? null; });
    return found;
  };

  const push = (map, key, value) => {
    if (key === null || key === undefined) return;
    if (!map.has(key)) map.set(key, []);
    map.get(key).push(value);
  };

  function definition(raw, text) {
    const columns = (raw.columns || []).map(([name, type, required, comment, generated]) => ({
      name: text(name), type: text(type), required: Boolean(required), comment: text(comment), generated: text(generated),
    }));
    return { columns, properties: raw.properties || {}, keys: raw.keys || {}, comment: raw.comment || "",
      partitioned: raw.partitioned || [] };
  }

  function table(raw) {
    const text = (at) => (at === null || at === undefined ? null : raw.texts[at]);
    if (raw.problem) return { name: raw.n, problem: raw.problem, commits: [], definitions: [], overlaps: [] };
    const commits = (raw.commits || []).map((values) => {
      const commit = named(COMMIT, values);
      COMMIT_TEXTS.forEach((name) => { commit[name] = text(commit[name]); });
      commit.table = raw.n;
      return commit;
    });
    const definitions = (raw.schemas || []).map((each) => definition(each, text));
    return { name: raw.n, version: raw.v, rows: raw.rows ?? null, files: raw.files, bytes: raw.bytes, commits, definitions,
      definition: definitions[definitions.length - 1], clustered: raw.clustered || [], small: raw.small || null,
      dead: raw.dead || null, doubt: raw.doubt || null, features: raw.features || [], leftOut: raw.leftOut || 0,
      sizes: raw.sizes || [], partitions: raw.partitions || [], partitionCount: raw.partitionCount || 0,
      overlaps: (raw.overlaps || []).map((each) => named(["column", "files", "mean", "most", "ranges"], each)) };
  }

  function node(raw, text, at) {
    return { id: text(raw.id), kind: text(raw.kind), name: raw.name, table: text(raw.table), how: text(raw.how), path: raw.path || "",
      about: raw.about || "", parents: raw.parents || [], after: raw.after || null, isView: Boolean(raw.view),
      columns: new Map((raw.columns || []).map(([name, about]) => [text(name).toLowerCase(), text(about)])),
      tests: (raw.tests || []).map(([id, kind, column]) => ({ id: text(id), kind: text(kind), column: text(column) })),
      fresh: raw.fresh ? named(["status", "newest", "looked"], raw.fresh) : null, children: [], number: at };
  }

  function command(raw, text) {
    const names = ["node", "state", "thread", "started", "ended", "message", "table", "version", "failures"];
    const nodes = (raw.nodes || []).map((values) => {
      const found = named(names, values);
      ["node", "state", "thread", "table"].forEach((name) => { found[name] = text(found[name]); });
      return found;
    });
    return { id: raw.id, line: raw.line || "", which: raw.which || "", state: raw.state || null, target: raw.target || "", started: raw.started || null,
      ended: raw.ended || null, isUndone: Boolean(raw.undone), nodes, byNode: new Map(nodes.map((each) => [each.node, each])) };
  }

  function run(raw, text) {
    const skips = (raw.skips || []).map((values) => {
      const skip = named(["node", "table", "ms", "version", "batch", "reused"], values);
      return { ...skip, node: text(skip.node), table: text(skip.table), batch: text(skip.batch) };
    });
    const recorded = { state: raw.state || null, counts: raw.counts || {}, failed: (raw.failed || []).map(text), problems: raw.problems || [], upkeep: raw.upkeep || null };
    return { id: raw.id, last: raw.last, targets: raw.targets || [], clients: raw.clients || [], commands: (raw.commands || []).map((each) => command(each, text)), skips, commits: [], recorded };
  }

  function unpublished(raw, text) {
    const found = named(["run", "target", "began", "running", "failed"], raw);
    return { ...found, failed: (found.failed || []).map(text) };
  }

  function read(raw) {
    const text = (at) => (at === null || at === undefined ? null : raw.texts[at]);
    const model = { made: raw.made, by: raw.by, project: raw.project, databases: raw.databases, notes: raw.notes,
      bounds: raw.bounds, manifestMade: raw.manifestMade, tables: raw.tables.map(table), runs: raw.runs.map((each) => run(each, text)),
      unpublished: (raw.unpublished || []).map((each) => unpublished(each, text)), nodes: raw.nodes.map((each, at) => node(each, text, at)) };
    index(model);
    Silt.judge(model);
    return model;
  }

  function index(model) {
    model.tableByName = new Map(model.tables.map((each) => [each.name, each]));
    model.nodeById = new Map(model.nodes.map((each) => [each.id, each]));
    model.nodeByTable = new Map(model.nodes.filter((each) => each.table).map((each) => [each.table, each]));
    model.testById = new Map(model.nodes.flatMap((each) => each.tests.map((test) => [test.id, { ...test, node: each }])));
    model.runById = new Map(model.runs.map((each) => [each.id, each]));
    model.commitsByNode = new Map();
    for (const each of model.tables) {
      for (const commit of each.commits) {
        push(model.commitsByNode, commit.node, commit);
        const found = model.runById.get(commit.run);
        if (found) found.commits.push(commit);
      }
    }
    model.nodes.forEach((each) => each.parents.forEach((at) => model.nodes[at].children.push(each.number)));
    model.runs.forEach((each) => summarize(each));
  }

  const total = (values) => {
    const known = values.filter((value) => value !== null);
    return known.length ? known.reduce((sum, value) => sum + value, 0) : null;
  };

  const BUILDING = ["build", "run", "seed", "snapshot", "clone", "retry"];

  /* What a run's commands and commits amount to: its main command is the last that built something. */
  function summarize(found) {
    found.commits.sort((one, other) => one.ms - other.ms);
    const { commits, commands } = found;
    const building = commands.filter((each) => BUILDING.includes(each.which));
    found.builds = building.length > 0;
    found.main = building[building.length - 1] || commands[commands.length - 1] || null;
    ["inserted", "updated", "deleted", "retries", "reruns"].forEach((name) => { found[name] = total(commits.map((each) => each[name])); });
    found.again = (found.retries || 0) + (found.reruns || 0);
    found.tables = [...new Set(commits.map((each) => each.table))];
    const starts = [...commands.map((each) => each.started), commits.length ? commits[0].ms : null].filter((each) => each !== null);
    found.started = Math.min(...starts, found.last);
    const worked = commands.map((each) => (each.ended && each.started ? each.ended - each.started : null));
    found.work = worked.length && !worked.includes(null) ? total(worked) : null;
    found.span = found.last - found.started;
  }

  Object.assign(Silt, { read, total, BUILDING });
})();
