"use strict";
/* The view of one run: its commands, each with its timeline, what failed, and its nodes. */
(() => {
  const { h, count, many, time, took, link, badge, tile, grid, filter, choice, section, nodeLink, age, short } = Silt;

  /* What happened to each node of a run: its last result, its commits and its skips together. */
  function nodesOf(run) {
    const found = new Map();
    const entry = (node) => {
      if (!found.has(node)) found.set(node, { node, commits: [], skips: [], result: null });
      return found.get(node);
    };
    run.results.forEach((each, node) => { entry(node).result = each; });
    run.commits.forEach((each) => entry(each.node || each.table).commits.push(each));
    run.skips.forEach((each) => entry(each.node || each.table).skips.push(each));
    return [...found.values()];
  }

  function stateOf(each) {
    if (each.result) return each.result.state;
    return each.commits.length ? "built" : each.skips.some((skip) => skip.reused) ? "reused" : "done earlier";
  }

  function view(model, id, query) {
    const run = model.runById.get(id);
    if (!run) return [h("h1", {}, "Unknown run"), h("p", {}, `${id} is not among the runs of this page.`)];
    const nodes = nodesOf(run);
    const list = h("div");
    const draw = () => list.replaceChildren(nodeRows(model, run, nodes, query));
    draw();
    const states = [...new Set(nodes.map(stateOf))];
    return [h("h1", {}, Silt.runName(run), " ", badge(run.state)), h("p", { class: "quiet id" }, `run id ${run.id}, `, age(run.last)),
      tiles(run, nodes), run.recorded.upkeep ? h("p", { class: "quiet" }, `Upkeep: ${run.recorded.upkeep}`) : null,
      run.recorded.problems.length ? section("Error", run.recorded.problems.map((each) => h("pre", {}, each))) : null,
      failures(model, nodes), commands(model, run, nodes),
      section("Nodes and tests", h("div", { class: "filters" }, filter("Find", "q", query, draw), choice("State", "state", query, states, draw)), list)];
  }

  function tiles(run, nodes) {
    const counts = Silt.countsOf(run);
    const states = counts.length ? counts : [...nodes.reduce((found, each) => found.set(stateOf(each), (found.get(stateOf(each)) || 0) + 1), new Map())];
    return h("div", { class: "tiles" }, states.map(([state, number]) => tile(badge(state), count(number))),
      run.work === null ? tile("at least", took(run.span), run.commands.length ? "the end of a command is not recorded" : "from its first to its last commit")
        : run.commands.length > 1 ? tile("time that commands took", took(run.work), `${count(run.commands.length)} commands within ${took(run.span)}`) : tile("took", took(run.work)),
      run.inserted === null ? null : tile("rows inserted", count(run.inserted)), run.updated ? tile("updated", count(run.updated)) : null, run.deleted ? tile("deleted", count(run.deleted)) : null,
      tile(run.commits.length === 1 ? "commit" : "commits", count(run.commits.length), run.state === "held" ? "the others wait on the run's branch" : null),
      run.again ? tile("tried again", count(run.again), "after other writers committed first") : null);
  }

  function failures(model, nodes) {
    const failed = nodes.filter((each) => stateOf(each) === "failed");
    if (!failed.length) return null;
    return section("Failed", failed.map((each) => failure(model, each, failed.length < 4)));
  }

  /* A message of one line that is shown whole needs no box. */
  function failure(model, each, isOpen) {
    const message = each.result.message || "no message";
    const line = short(Silt.firstLine(message), 100);
    const said = [h("b", {}, Silt.nameOf(model, each.node)), " ", h("span", { class: "quiet" }, line)];
    return line === message ? h("p", {}, said) : h("details", { open: isOpen }, h("summary", {}, said), h("pre", {}, message));
  }

  /* Each command with its own timeline, the last one open. */
  function commands(model, run, nodes) {
    if (!run.commands.length) return section("Timeline", h("p", { class: "quiet" }, "No command of the run is recorded in this project: only its commits are known."), Silt.marks(run));
    const many = run.commands.length > 1;
    return section(many ? `${count(run.commands.length)} commands` : "Command", run.commands.map((each, at) => {
      const last = at === run.commands.length - 1;
      return h("details", { class: "command-of-run", open: last || each.state === "failed" },
        h("summary", {}, many ? `${at + 1}. ` : "", badge(each.state || "ended"), " ", h("code", { title: each.line }, short(each.line, 110)), " ",
          h("span", { class: "quiet" }, [each.target, time(each.started), each.ended ? took(each.ended - each.started) : "no end recorded", each.isUndone ? "rolled back or dropped" : ""].filter(Boolean).join(", "))),
        h("p", { class: "quiet id" }, `invocation ${each.id}`), Silt.timeline(model, each, nodes));
    }), run.commands.some((each) => each.nodes.length) ? null : Silt.marks(run));
  }

  function nodeRows(model, run, nodes, query) {
    const wanted = (query.get("q") || "").toLowerCase();
    const state = query.get("state");
    const found = nodes.filter((each) => `${each.node} ${Silt.nameOf(model, each.node)}`.toLowerCase().includes(wanted) && (!state || stateOf(each) === state));
    const waits = new Map(run.commands.map((each, at) => [at, Silt.waits(model, each)]));
    const wait = (each) => (each.result ? waits.get(each.result.at).get(each.node) || null : null);
    const sum = (each, name) => Silt.total(each.commits.map((commit) => commit[name]));
    const again = (each) => (sum(each, "retries") || 0) + (sum(each, "reruns") || 0);
    const length = (each) => (each.result && each.result.started ? each.result.ended - each.result.started : null);
    return grid([
      { name: "node or test", value: (each) => Silt.nameOf(model, each.node), cell: (each) => nodeLink(model, each.node) },
      { name: "state", tight: true, value: stateOf, cell: (each) => badge(stateOf(each)) },
      { name: "command", number: true, optional: true, value: (each) => (run.commands.length > 1 && each.result ? each.result.at + 1 : null) },
      { name: "took", number: true, value: length, cell: (each) => took(length(each)) },
      { name: "started after", optional: true, value: (each) => (wait(each) && wait(each).cause ? Silt.nameOf(model, wait(each).cause) : null), cell: (each) => (wait(each) && wait(each).cause ? nodeLink(model, wait(each).cause) : Silt.UNKNOWN) },
      { name: "wait for a thread", hint: "while all threads were at work", number: true, optional: true, value: (each) => wait(each) && (wait(each).thread >= 50 ? wait(each).thread : null), cell: (each) => (wait(each) && wait(each).thread >= 50 ? took(wait(each).thread) : Silt.UNKNOWN) },
      { name: "rows", hint: "inserted, updated, deleted", number: true, optional: true, value: (each) => Silt.total(["inserted", "updated", "deleted"].map((name) => sum(each, name))), cell: (each) => Silt.change(sum(each, "inserted"), sum(each, "updated"), sum(each, "deleted")) },
      { name: "wrote", tight: true, optional: true, value: (each) => each.commits.length, cell: (each) => wrote(model, each) },
      { name: "tried again", number: true, optional: true, value: again, cell: (each) => (again(each) ? count(again(each)) : Silt.UNKNOWN) },
      { name: "message", wide: "message", optional: true, value: (each) => said(model, run, each), cell: (each) => message(model, run, each) },
    ], found, { empty: "No node.", label: "nodes and tests", mark: (each) => (each.commits.some((commit) => commit.undoneBy) ? "undone" : null) });
  }

  const wrote = (model, each) => [each.commits.slice(0, 3).map((commit, at) => [at ? ", " : "",
    link(["table", commit.table], `v${commit.version}`, { title: `${commit.table}@v${commit.version}` }), commit.undoneBy ? ` (rolled back by v${commit.undoneBy})` : ""]),
  each.commits.length > 3 ? ` and ${many(each.commits.length - 3, "more commit")}` : ""];

  function message(model, run, each) {
    const text = said(model, run, each);
    return text ? h("span", { title: each.result ? each.result.message : null }, text) : Silt.UNKNOWN;
  }

  function said(model, run, each) {
    if (stateOf(each) === "skipped") {
      const own = model.testById.has(each.node) ? model.testById.get(each.node).node.id : each.node;
      const cause = Silt.skippedBy(model, own, (id) => run.results.has(id) && run.results.get(id).state === "failed");
      return cause ? `because ${Silt.nameOf(model, cause)} failed` : "because of a failure";
    }
    const [skip] = each.skips;
    if (each.result && each.result.message) return Silt.firstLine(each.result.message).replace(/^(reused|skipped, nothing written): /, "");
    return skip && skip.version !== null ? `its work is in v${skip.version} of ${Silt.tableName(model, skip.table)}` : "";
  }

  Object.assign(Silt, { runView: view });
})();
