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

  function node(raw, text, all) {
    return { id: text(raw.id), kind: text(raw.kind), name: raw.name, table: text(raw.table), how: text(raw.how), path: raw.path || "",
      about: raw.about || "", parents: raw.parents || [], after: raw.after || null,
      columns: new Map((raw.columns || []).map(([name, about]) => [text(name).toLowerCase(), text(about)])),
      tests: (raw.tests || []).map(([id, kind, column]) => ({ id: text(id), kind: text(kind), column: text(column) })),
      fresh: raw.fresh ? named(["status", "newest", "looked"], raw.fresh) : null, children: [], number: all };
  }

  function run(raw, text) {
    const commands = (raw.commands || []).map((each) =>
      named(["invocation", "command", "state", "target", "started", "ended"], each));
    const skips = (raw.skips || []).map((values) => {
      const skip = named(["node", "table", "ms", "version", "batch"], values);
      return { ...skip, node: text(skip.node), table: text(skip.table), batch: text(skip.batch) };
    });
    const recorded = { state: raw.state || null, counts: raw.counts || {}, failed: raw.failed || [], problems: raw.problems || [] };
    return { id: raw.id, last: raw.last, commands, skips, commits: [], recorded, kept: raw.nodes ? results({ nodes: raw.nodes }, text) : null };
  }

  function results(raw, text) {
    if (!raw) return null;
    const names = ["node", "state", "thread", "started", "ended", "message", "table", "version", "failures"];
    const nodes = raw.nodes.map((values) => {
      const found = named(names, values);
      ["node", "state", "thread", "table"].forEach((name) => { found[name] = text(found[name]); });
      return found;
    });
    return { ...raw, nodes, byNode: new Map(nodes.map((each) => [each.node, each])) };
  }

  function read(raw) {
    const text = (at) => (at === null || at === undefined ? null : raw.texts[at]);
    const model = { made: raw.made, by: raw.by, project: raw.project, databases: raw.databases, notes: raw.notes,
      bounds: raw.bounds, manifestMade: raw.manifestMade,
      tables: raw.tables.map(table), runs: raw.runs.map((each) => run(each, text)),
      nodes: raw.nodes.map((each, at) => node(each, text, at)), results: results(raw.results, text) };
    link(model);
    return model;
  }

  function link(model) {
    model.tableByName = new Map(model.tables.map((each) => [each.name, each]));
    model.nodeById = new Map(model.nodes.map((each) => [each.id, each]));
    model.nodeByTable = new Map(model.nodes.filter((each) => each.table).map((each) => [each.table, each]));
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
    model.runs.forEach((each) => summarize(each, model));
    const failed = (test) => { const found = model.results && model.results.byNode.get(test.id); return Boolean(found) && found.state === "failed"; };
    model.nodes.forEach((each) => { each.state = stateOf(each, model); each.failing = each.tests.filter(failed); });
  }

  const total = (values) => {
    const known = values.filter((value) => value !== null);
    return known.length ? known.reduce((sum, value) => sum + value, 0) : null;
  };

  function summarize(found, model) {
    found.commits.sort((one, other) => one.ms - other.ms);
    const { commits, commands } = found;
    found.results = model.results && model.results.run === found.id ? model.results : found.kept;
    ["inserted", "updated", "deleted"].forEach((name) => { found[name] = total(commits.map((each) => each[name])); });
    found.retries = total(commits.map((each) => each.retries)) || 0;
    found.reruns = total(commits.map((each) => each.reruns)) || 0;
    found.tables = new Set(commits.map((each) => each.table)).size;
    const starts = [...commands.map((each) => each.started), commits.length ? commits[0].ms : null];
    found.started = Math.min(...starts.filter((each) => each !== null), found.last);
    const took = commands.map((each) => (each.ended ? each.ended - each.started : null));
    found.took = took.length && !took.includes(null) ? total(took) : found.last - found.started;
    found.isExact = took.length > 0 && !took.includes(null);
    const failing = found.results ? found.results.nodes.filter((each) => each.state === "failed").length : null;
    found.failed = found.recorded.counts.error ?? failing;
    found.state = runState(found);
  }

  function runState(found) {
    const { state } = found.recorded;
    if (state && state !== "ended") return state;
    if (found.results) return found.failed ? "failed" : "succeeded";
    return state || "committed";
  }

  /* The state of a node: what the last command said, unless a commit came later; then how old it is. */
  function stateOf(found, model) {
    if (found.kind === "source") {
      if (!found.fresh) return "not checked";
      return found.fresh.status === "pass" ? "fresh" : "stale";
    }
    const result = model.results && model.results.byNode.get(found.id);
    const commits = model.commitsByNode.get(found.id) || [];
    const last = commits.length ? commits[commits.length - 1] : null;
    found.last = last ? commits.reduce((one, other) => (other.ms > one.ms ? other : one)) : null;
    const isLater = last && model.results && found.last.run !== model.results.run && result &&
      found.last.ms > (result.ended || model.results.nodes.reduce((most, each) => Math.max(most, each.ended || 0), 0));
    const state = isLater ? "built" : result ? result.state : last || model.tableByName.has(found.table) ? "built earlier" : "not built";
    const isOld = found.after && found.last && model.made - found.last.ms > found.after;
    return isOld && ["built", "skipped", "built earlier"].includes(state) ? "stale" : state;
  }

  /* What keeps a blocked node from being run: the nearest ancestor that failed, or whose test did. */
  function blockedBy(model, id) {
    const start = model.nodeById.get(id);
    const seen = new Set(start ? [start] : []);
    for (const each of seen) {
      const failing = each.failing.length ? each.failing[0].id : null;
      if (each !== start && (each.state === "failed" || failing)) return each.state === "failed" ? each.id : failing;
      each.parents.forEach((at) => seen.add(model.nodes[at]));
    }
    return null;
  }

  Silt.blockedBy = blockedBy;
  Silt.read = read;
  Silt.total = total;
})();
