"use strict";
/* Decides the states of runs and nodes, by the last command that ran each node for the newest target, and what a failure reaches. */
(() => {
  const { BUILDING } = Silt;
  const DONE = ["built", "built earlier", "reused", "done earlier"];
  const WITHOUT_TABLE = ["table", "incremental", "snapshot", "seed", "view", "materialized_view"];
  const ORDER = ["failed", "warned", "skipped", "held", "built", "passed", "reused", "done earlier"];

  function judge(model) {
    const held = new Set(model.unpublished.filter((each) => !each.running).map((each) => each.run));
    model.runs.forEach((run) => { run.commands.forEach(hold); run.results = resultsOf(run); run.state = run.recorded.state || (held.has(run.id) ? "held" : "committed"); });
    const commands = model.runs.flatMap((run) => run.commands.map((each) => ({ ...each, run }))).filter((each) => each.started && !each.isUndone);
    commands.sort((one, other) => one.started - other.started);
    const building = commands.filter((each) => BUILDING.includes(each.which));
    model.last = building[building.length - 1] || null;
    model.target = model.last ? model.last.target : "";
    model.newestFor = (target) => newestResults(commands.filter((each) => each.target === target));
    model.newest = model.newestFor(model.target);
    const failed = (test) => { const found = model.newest.get(test.id); return Boolean(found) && found.result.state === "failed"; };
    model.nodes.forEach((each) => { each.failing = each.tests.filter(failed); });
    model.nodes.forEach((each) => { each.state = stateOf(each, model); });
    const reached = descendants(model, model.nodes.filter((each) => each.failing.length || ["failed", "skipped"].includes(each.state)));
    model.nodes.filter((each) => each.kind === "exposure").forEach((each) => { each.state = reached.has(each) ? "affected" : "fine"; });
  }

  /* What a held command has built is on the branch of its run only. */
  function hold(command) {
    if (command.state === "held") command.nodes.filter((each) => each.state === "built").forEach((each) => { each.state = "held"; });
  }

  /* The newest result of each node and test, with its command. */
  function newestResults(commands) {
    const found = new Map();
    commands.forEach((command) => command.nodes.forEach((result) => found.set(result.node, { result, command })));
    return found;
  }

  /* The last result of each node in a run; a node that an earlier command has built stays built if a later one finds it done. */
  function resultsOf(run) {
    const found = new Map();
    run.commands.forEach((command, at) => command.nodes.forEach((result) => {
      if (result.state !== "done earlier" || !found.has(result.node)) found.set(result.node, { ...result, at });
    }));
    return found;
  }

  function stateOf(node, model) {
    if (node.kind === "source") return !node.fresh ? "not checked" : node.fresh.status === "pass" ? "fresh" : "stale";
    if (node.how === "ephemeral") return "ephemeral";
    const ofTarget = (commit) => { const run = model.runById.get(commit.run); return !run || !run.targets.length || run.targets.includes(model.target); };
    const commits = (model.commitsByNode.get(node.id) || []).filter((each) => !model.target || ofTarget(each));
    node.last = commits.length ? commits.reduce((one, other) => (other.ms > one.ms ? other : one)) : null;
    node.seen = model.newest.get(node.id) || null;
    const state = found(node, model);
    const isOld = node.after && node.last && model.made - node.last.ms > node.after;
    return isOld && DONE.includes(state) ? "stale" : state;
  }

  /* What the newest command said of the node, unless a commit of another run came later. */
  function found(node, model) {
    const { seen, last } = node;
    if (seen && last && last.run !== seen.command.run.id && last.ms > (seen.result.ended || seen.command.ended || seen.command.started)) return "built";
    if (!seen) return last || node.isView || model.tableByName.has(node.table) ? "built earlier" : WITHOUT_TABLE.includes(node.how) ? "not built" : "not known";
    return seen.result.state === "built" && seen.command.id !== model.last.id ? "built earlier" : seen.result.state;
  }

  /* All nodes that read one of these, directly or not. */
  function descendants(model, nodes) {
    const reached = new Set();
    const left = [...nodes];
    while (left.length) {
      for (const at of left.pop().children) {
        const child = model.nodes[at];
        if (!reached.has(child)) { reached.add(child); left.push(child); }
      }
    }
    return reached;
  }

  /* What keeps a skipped node from being run: the nearest ancestor that failed, or whose test did. */
  function skippedBy(model, id, isFailed) {
    const start = model.nodeById.get(id);
    const seen = new Set(start ? [start] : []);
    for (const each of seen) {
      const failing = each.tests.find((test) => isFailed(test.id));
      if (each !== start && isFailed(each.id)) return each.id;
      if (failing && (each !== start || failing.id.startsWith("unit_test."))) return failing.id;
      each.parents.forEach((at) => seen.add(model.nodes[at]));
    }
    return null;
  }

  /* The nodes and tests of a run by state, worst first: of its kept results, or else of what its record counted. */
  function countsOf(run) {
    const counts = new Map();
    const add = (state, number) => counts.set(state, (counts.get(state) || 0) + number);
    const names = { error: "failed", warn: "warned", skip: "skipped", pass: "succeeded", reused: "reused or done earlier" };
    const all = Object.values(run.recorded.counts).reduce((sum, number) => sum + number, 0);
    if (run.results.size >= all) run.results.forEach((each) => add(each.state, 1));
    else Object.entries(names).forEach(([name, state]) => { if (run.recorded.counts[name]) add(state, run.recorded.counts[name]); });
    const rank = (state) => (ORDER.includes(state) ? ORDER.indexOf(state) : ORDER.length);
    return [...counts].sort(([one], [other]) => rank(one) - rank(other));
  }

  const isBad = (run) => ["failed", "held", "broken off", "interrupted"].includes(run.state);
  const nodeOfTable = (model, table) => model.nodeByTable.get(table.name) ||
    model.nodeById.get(([...table.commits].reverse().find((each) => model.nodeById.has(each.node)) || {}).node) || null;

  Object.assign(Silt, { judge, descendants, skippedBy, countsOf, isBad, nodeOfTable });
})();
