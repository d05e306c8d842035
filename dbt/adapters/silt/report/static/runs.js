"use strict";
/* The view of all runs: the state of the warehouse first, then the runs over time. */
(() => {
  const { h, count, many, took, badge, age, brief, grid, filter, choice, section, kind } = Silt;
  const STATES = ["succeeded", "failed", "held", "interrupted", "broken off", "running", "ended", "committed"];
  const NEWEST = 40;

  const rows = (run) => Silt.total([run.inserted, run.updated, run.deleted]);
  const worked = (run) => (run.work === null ? (run.span < 1000 ? Silt.UNKNOWN : `≥ ${took(run.span)}`) : took(run.work));
  const nameAndState = (run) => `${Silt.runName(run)}: ${run.state}`;

  function view(model, query) {
    const list = h("div");
    const draw = () => list.replaceChildren(...shown(model, query));
    draw();
    const states = STATES.filter((state) => model.runs.some((run) => run.state === state));
    const targets = [...new Set(model.runs.flatMap((run) => run.targets))];
    return [h("h1", {}, model.project ? `Runs of ${model.project}` : "Runs"), Silt.status(model),
      h("div", { class: "filters" }, filter("Find", "q", query, draw), choice("State", "state", query, states, draw), targets.length > 1 ? choice("Target", "target", query, targets, draw) : null), list];
  }

  function chosen(model, query) {
    const wanted = (query.get("q") || "").toLowerCase();
    const [state, target] = [query.get("state"), query.get("target")];
    return model.runs.filter((run) => (!state || run.state === state) && (!target || run.targets.includes(target)) &&
      `${run.id} ${Silt.runName(run)} ${run.commands.map((each) => each.line).join(" ")}`.toLowerCase().includes(wanted));
  }

  function shown(model, query) {
    const found = chosen(model, query);
    const inTime = found.slice(0, NEWEST).reverse();
    const item = (run, value, text) => ({ value, ms: Silt.startOf(run), label: `${nameAndState(run)}, ${text}`, short: text, state: run.state, isMarked: Silt.isBad(run), href: `#/run/${encodeURIComponent(run.id)}` });
    return [found.length > 1 ? [strip(inTime), h("div", { class: "columns" },
      section("Time that commands took", Silt.charts.bars("time that the commands of each run took", inTime.map((run) => item(run, run.work ?? run.span, worked(run))), took, { isDuration: true })),
      section("Rows changed", Silt.charts.bars("rows that each run changed", inTime.map((run) => item(run, rows(run) || 0, `${count(rows(run) || 0)} rows`.replace(/ rows$/, ""))), count, {})))] : null,
    section("Runs", table(model, found))].flat(Infinity).filter(Boolean);
  }

  /* The newest runs as signs, oldest first. */
  function strip(inTime) {
    const mark = (run) => h("a", { class: `night ${kind(run.state)}`, href: `#/run/${encodeURIComponent(run.id)}`, title: `${nameAndState(run)}, ${totalsOf(run)}`, "aria-label": nameAndState(run) }, Silt.sign(run.state));
    const states = STATES.filter((state) => inTime.some((run) => run.state === state));
    return section(`Last ${many(inTime.length, "run")}`, h("div", { class: "nights" }, h("span", { class: "quiet" }, brief(Silt.startOf(inTime[0]))), inTime.map(mark), h("span", { class: "quiet" }, brief(Silt.startOf(inTime[inTime.length - 1])))), Silt.legend(states));
  }

  const totalsOf = (run) => Silt.totals(run) || "no results are kept";

  function failures(model, run) {
    const { failed, problems } = run.recorded;
    const named = failed.slice(0, 2).map((id, at) => [at ? ", " : "", Silt.nodeLink(model, id)]);
    const more = failed.length > 2 ? ` and ${count(failed.length - 2)} more` : "";
    return [named, more, problems.length ? [named.length ? "; " : "", Silt.short(Silt.briefIds(problems[0]), 60)] : ""];
  }

  function table(model, found) {
    const number = (name, hint, value) => ({ name, hint, number: true, optional: true, value, cell: (run) => (value(run) ? count(value(run)) : Silt.UNKNOWN) });
    return grid([
      { name: "run", tight: true, value: (run) => run.last, cell: (run) => [Silt.runLink(run), h("small", { title: run.id }, Silt.shortId(run.id), run.commands.length > 1 ? `, ${count(run.commands.length)} commands` : "")] },
      { name: "age", tight: true, value: (run) => -run.last, cell: (run) => age(run.last) },
      { name: "state", tight: true, value: (run) => run.state, cell: (run) => badge(run.state) },
      { name: "target", tight: true, optional: true, value: (run) => run.targets.join(" ") },
      { name: "failed", wide: true, optional: true, value: (run) => run.recorded.failed.length + run.recorded.problems.length, cell: (run) => failures(model, run) },
      { name: "work", hint: "the sum of the durations of its commands", number: true, value: (run) => run.work ?? run.span, cell: worked },
      number("tables", "that it changed", (run) => run.tables.length),
      { name: "rows", hint: "inserted, updated, deleted", number: true, value: rows, cell: (run) => Silt.change(run.inserted, run.updated, run.deleted) },
      number("reused", "nodes whose tables already hold what a build would write", (run) => run.skips.filter((each) => each.reused).length),
      number("done earlier", "writes that an earlier command of the run has done", (run) => run.skips.filter((each) => !each.reused).length),
      number("tried again", "after other writers committed first", (run) => run.again),
    ], found, { empty: "No run is on record.", label: "runs" });
  }

  Object.assign(Silt, { runsView: view });
})();
