"use strict";
/* The views of runs: all of them over time, and one as a timeline of its nodes. */
(() => {
  const { h, s, count, time, took, link, badge, tile, grid, filter, choice, section } = Silt;
  const STATES = ["succeeded", "failed", "broken off", "interrupted", "running", "ended", "committed"];
  const NEWEST = 30;

  const rows = (run) => Silt.total([run.inserted, run.updated, run.deleted]);
  const commandOf = (run) => (run.commands.length ? run.commands[run.commands.length - 1].command : "");
  const outcome = (run) => [run.state, ...Object.entries(run.recorded.counts).filter(([, number]) => number).map(([name, number]) => `${number} ${name}`)].join(", ");
  const said = (run) => [...run.recorded.failed, ...run.recorded.problems].join(", ") || (run.failed ? count(run.failed) : "");
  const howLong = (run) => (run.isExact ? took(run.took) : `≥ ${took(run.took)}`);
  const kind = (state) => state.replace(/ /g, "-");

  function overview(model, query) {
    const list = h("div");
    const draw = () => list.replaceChildren(...shown(model, query));
    draw();
    return [h("h1", {}, model.project ? `Runs of ${model.project}` : "Runs"), tiles(model),
      h("div", { class: "filters" }, filter("Find", "q", query, draw), choice("State", "state", query, STATES, draw)), list];
  }

  function tiles(model) {
    const [newest] = model.runs;
    const damaged = model.tables.filter((each) => each.problem || each.doubt).length;
    const states = (state) => model.nodes.filter((each) => each.state === state).length;
    return h("div", { class: "tiles" },
      newest ? tile("last run", link(["run", newest.id], newest.state), time(newest.last)) : tile("runs", "none"),
      tile("runs shown", count(model.runs.length)),
      tile("tables", link(["tables"], count(model.tables.length)), Silt.size(Silt.total(model.tables.map((each) => each.bytes ?? null)) ?? 0)),
      damaged ? tile("damaged tables", h("a", { href: "#/tables?state=damaged" }, count(damaged))) : null,
      ["failed", "blocked", "stale"].map((state) => states(state) ? tile(`nodes ${state}`, h("a", { href: `#/graph?state=${state}` }, count(states(state)))) : null));
  }

  function shown(model, query) {
    const wanted = (query.get("q") || "").toLowerCase();
    const state = query.get("state");
    const found = model.runs.filter((run) => (!state || run.state === state) &&
      `${run.id} ${commandOf(run)} ${run.commands.map((each) => each.target).join(" ")}`.toLowerCase().includes(wanted));
    const inTime = [...found].reverse();
    const item = (run, value, label) => ({ value, label: `${run.id}: ${label}, ${run.state}`, kind: kind(run.state), href: `#/run/${encodeURIComponent(run.id)}` });
    return [
      section(`Last ${Math.min(NEWEST, inTime.length)} runs`, h("div", { class: "nights" }, inTime.slice(-NEWEST).map((run) =>
        h("a", { class: `night ${kind(run.state)}`, href: `#/run/${encodeURIComponent(run.id)}`, title: `${run.id}: ${outcome(run)}`, "aria-label": `${run.id}: ${run.state}` })))),
      h("div", { class: "columns" },
        section("Duration", Silt.charts.bars("duration of each run", inTime.map((run) => item(run, run.took, howLong(run))), took)),
        section("Rows changed", Silt.charts.bars("rows that each run changed", inTime.map((run) => item(run, rows(run), `${count(rows(run))} rows`)), count))),
      h("p", { class: "legend" }, STATES.map(badge)),
      grid([
        { name: "run", tight: true, value: (run) => run.id, cell: (run) => link(["run", run.id], Silt.short(run.id, 36)) },
        { name: "state", value: (run) => run.state, cell: (run) => badge(run.state) },
        { name: "failed", value: (run) => run.recorded.failed.length, cell: (run) => Silt.short(said(run), 80) },
        { name: "command", value: commandOf },
        { name: "started (UTC)", tight: true, value: (run) => run.started, cell: (run) => time(run.started) },
        { name: "took", number: true, value: (run) => run.took, cell: howLong },
        { name: "tables", number: true, value: (run) => run.tables, cell: (run) => count(run.tables) },
        { name: "commits", number: true, value: (run) => run.commits.length, cell: (run) => count(run.commits.length) },
        { name: "rows", number: true, value: rows, cell: (run) => count(rows(run)) },
        { name: "skipped", number: true, value: (run) => run.skips.length, cell: (run) => count(run.skips.length) },
        { name: "tried again", number: true, value: (run) => run.retries + run.reruns, cell: (run) => count(run.retries + run.reruns) },
      ], found, { empty: "No run is on record." })];
  }

  /* What happened to each node of a run: its result, its commits and its skips together. */
  function nodesOf(run) {
    const found = new Map();
    const entry = (node) => {
      if (!found.has(node)) found.set(node, { node, commits: [], skips: [], result: null });
      return found.get(node);
    };
    (run.results ? run.results.nodes : []).forEach((each) => { entry(each.node).result = each; });
    run.commits.forEach((each) => entry(each.node || each.table).commits.push(each));
    run.skips.forEach((each) => entry(each.node || each.table).skips.push(each));
    return [...found.values()];
  }

  const stateOf = (each) => (each.result ? each.result.state : each.commits.length ? "built" : "skipped");

  function one(model, id, query) {
    const run = model.runById.get(id);
    if (!run) return [h("h1", {}, "Unknown run"), h("p", {}, `${id} is not among the runs of this page.`)];
    const nodes = nodesOf(run);
    nodes.forEach((each) => { each.wait = waited(model, run, each); });
    const list = h("div");
    const draw = () => list.replaceChildren(...nodeRows(model, run, nodes, query));
    draw();
    const states = [...new Set(nodes.map(stateOf))];
    return [h("h1", {}, `Run ${run.id} `, badge(run.state)),
      h("div", { class: "tiles" }, tile("result", outcome(run)), tile("took", howLong(run)), tile("nodes", count(nodes.length)), tile("commits", count(run.commits.length)),
        tile("rows inserted", count(run.inserted)), tile("updated", count(run.updated)), tile("deleted", count(run.deleted)),
        tile("skipped", count(run.skips.length)), tile("tried again", count(run.retries + run.reruns), "after conflicts")),
      section("Commands", grid([
        { name: "command", value: (each) => each.command }, { name: "target", value: (each) => each.target },
        { name: "state", value: (each) => each.state, cell: (each) => badge(each.state) },
        { name: "started (UTC)", tight: true, value: (each) => each.started, cell: (each) => time(each.started) },
        { name: "took", number: true, value: (each) => (each.ended ? each.ended - each.started : null), cell: (each) => (each.ended ? took(each.ended - each.started) : Silt.UNKNOWN) },
        { name: "invocation", value: (each) => each.invocation }], run.commands, { empty: "No command of the run is on record in this project." })),
      run.recorded.problems.length ? section("Problem", run.recorded.problems.map((each) => h("pre", {}, each))) : null,
      section("Timeline", timeline(model, run, nodes)),
      failures(nodes),
      section("Nodes", h("div", { class: "filters" }, filter("Find", "q", query, draw), choice("State", "state", query, states, draw)), list)];
  }

  /* For whom a node waited: the parent that ended last, and then for a free thread. */
  function waited(model, run, each) {
    const node = model.nodeById.get(each.node);
    if (!each.result || !each.result.started || !node || !run.results) return null;
    const ends = node.parents.map((at) => run.results.byNode.get(model.nodes[at].id)).filter((parent) => parent && parent.ended);
    const last = ends.reduce((most, parent) => (most && most.ended >= parent.ended ? most : parent), null);
    const begin = last ? last.ended : Math.min(...run.results.nodes.filter((other) => other.started).map((other) => other.started));
    return { parent: last && last.node, thread: Math.max(0, each.result.started - begin) };
  }

  function timeline(model, run, nodes) {
    const timed = nodes.filter((each) => each.result && each.result.started && each.result.ended);
    if (!timed.length) return marks(run);
    const from = Math.min(...timed.map((each) => each.result.started));
    const span = Math.max(...timed.map((each) => each.result.ended)) - from || 1;
    const threads = [...new Set(timed.map((each) => each.result.thread))].sort((one, other) => one.localeCompare(other, "en", { numeric: true }));
    const wide = Math.max(700, Math.min(1380, document.documentElement.clientWidth - 50));
    const x = (ms) => 70 + ((ms - from) / span) * (wide - 74);
    const line = 26;
    const lanes = threads.map((thread, at) => s("g", {}, s("text", { class: "name", x: 64, y: at * line + 36, "text-anchor": "end" }, Silt.short(thread.replace(/ \(.*/, ""), 10)),
      s("line", { class: "rule", x1: 70, x2: wide, y1: at * line + 45, y2: at * line + 45 })));
    const ticks = [0, 0.25, 0.5, 0.75, 1].map((part) => s("text", { class: "axis", x: 70 + part * (wide - 74), y: 12, "text-anchor": part === 1 ? "end" : part ? "middle" : "start" }, took(part * span)));
    const drawn = timed.map((each) => {
      const { started, ended, thread } = each.result;
      const y = threads.indexOf(thread) * line + 22;
      const state = stateOf(each);
      const bar = s("rect", { class: `bar ${kind(state)}`, x: x(started), y, width: Math.max(1.5, x(ended) - x(started) - 0.5), height: line - 8, rx: 2 },
        s("title", {}, `${each.node}: ${state}, ${took(ended - started)}${sayWait(each)}${wrote(each)}`));
      const again = each.commits.some((commit) => commit.retries || commit.reruns) ? s("circle", { class: "again", cx: x(started) + 4, cy: y + 5, r: 3 }, s("title", {}, "tried again after a conflict")) : null;
      const label = x(ended) - x(started) > 60 ? s("text", { class: "inside", x: x(started) + 4, y: y + 13 }, Silt.short(nameOf(model, each.node), Math.floor((x(ended) - x(started)) / 7))) : null;
      return s("a", { href: model.nodeById.has(each.node) ? `#/graph?focus=${encodeURIComponent(each.node)}` : "#/", "aria-label": each.node }, bar, again, label);
    });
    return h("div", { class: "chart wide" }, s("svg", { viewBox: `0 0 ${wide} ${threads.length * line + 30}`, role: "img", "aria-label": "nodes by thread" }, ticks, lanes, drawn),
      h("p", { class: "legend" }, ["built", "skipped", "failed", "passed", "warned"].map(badge), h("span", { class: "again-mark" }, "● tried again")));
  }

  /* Where dbt's results are of another command, only the moments of commits are known. */
  function marks(run) {
    if (!run.commits.length) return h("p", { class: "quiet" }, "It committed nothing.");
    const wide = Silt.charts.WIDTH;
    const from = run.commits[0].ms;
    const span = run.commits[run.commits.length - 1].ms - from || 1;
    const drawn = run.commits.map((each) => s("a", { href: `#/table/${encodeURIComponent(each.table)}`, "aria-label": each.table },
      s("rect", { class: "bar built", x: 4 + ((each.ms - from) / span) * (wide - 12), y: 8, width: 3, height: 26 }, s("title", {}, `${each.table}@v${each.version} ${time(each.ms)}`))));
    return h("div", { class: "chart" }, s("svg", { viewBox: `0 0 ${wide} 54`, role: "img", "aria-label": "commits over time" }, drawn,
      s("text", { class: "axis", x: 0, y: 50 }, time(from)), s("text", { class: "axis", x: wide, y: 50, "text-anchor": "end" }, time(from + span))),
    h("p", { class: "quiet" }, "The times of its commits. Threads and durations are known for the last 60 commands of this project only."));
  }

  const nameOf = (model, node) => (model.nodeById.has(node) ? model.nodeById.get(node).name : node);
  const sayWait = (each) => (each.wait ? `, waited ${each.wait.parent ? `for ${each.wait.parent}, then ` : ""}${took(each.wait.thread)} for a free thread` : "");
  const wrote = (each) => each.commits.map((commit) => `; ${commit.table}@v${commit.version}`).join("");

  function failures(nodes) {
    const failed = nodes.filter((each) => stateOf(each) === "failed");
    if (!failed.length) return null;
    return section("Failed", failed.map((each) => h("details", { open: failed.length < 6 }, h("summary", {}, each.node), h("pre", {}, each.result.message || "no message"))));
  }

  function nodeRows(model, run, nodes, query) {
    const wanted = (query.get("q") || "").toLowerCase();
    const state = query.get("state");
    const found = nodes.filter((each) => String(each.node).toLowerCase().includes(wanted) && (!state || stateOf(each) === state));
    const sum = (each, name) => Silt.total(each.commits.map((commit) => commit[name]));
    const number = (name, field) => ({ name, number: true, value: (each) => sum(each, field), cell: (each) => count(sum(each, field)) });
    return [grid([
      { name: "node", value: (each) => each.node, cell: (each) => (model.nodeById.has(each.node) ? h("a", { href: `#/graph?focus=${encodeURIComponent(each.node)}` }, each.node) : each.node) },
      { name: "state", value: stateOf, cell: (each) => badge(stateOf(each)) },
      { name: "took", number: true, value: (each) => (each.result && each.result.started ? each.result.ended - each.result.started : null), cell: (each) => (each.result && each.result.started ? took(each.result.ended - each.result.started) : Silt.UNKNOWN) },
      { name: "started after", value: (each) => (each.wait ? each.wait.parent || "" : ""), cell: (each) => (each.wait && each.wait.parent ? nameOf(model, each.wait.parent) : Silt.UNKNOWN) },
      { name: "wait for a thread", number: true, value: (each) => each.wait && each.wait.thread, cell: (each) => (each.wait ? took(each.wait.thread) : Silt.UNKNOWN) },
      { name: "wrote", value: (each) => each.commits.length, cell: (each) => each.commits.slice(0, 5).map((commit) => [link(["table", commit.table], `${commit.table}@v${commit.version}`), commit.undoneBy ? ` rolled back by v${commit.undoneBy}` : "", " "]) },
      { name: "message", value: (each) => what(model, each), cell: (each) => what(model, each) },
      number("inserted", "inserted"), number("updated", "updated"), number("deleted", "deleted"), number("files", "filesAdded"),
      { name: "tried again", number: true, value: (each) => (sum(each, "retries") || 0) + (sum(each, "reruns") || 0), cell: (each) => count((sum(each, "retries") || 0) + (sum(each, "reruns") || 0)) },
    ], found, { empty: "No node." })];
  }

  function what(model, each) {
    const [skip] = each.skips;
    const cause = stateOf(each) === "blocked" ? Silt.blockedBy(model, each.node) : null;
    const said = cause ? `blocked by ${cause}` : each.result && each.result.message ? each.result.message.split("\n")[0] : skip ? `skipped: its work is in ${skip.table}@v${skip.version}` : "";
    return Silt.short(said, 160);
  }

  Object.assign(Silt, { runsView: overview, runView: one });
})();
