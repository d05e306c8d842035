"use strict";
/* The first things to know: what failed, since when, which tables are affected, and what waits for somebody. */
(() => {
  const { h, count, many, badge, nodeLink, runLink, age, brief, short, command, link } = Silt;
  const TARGETS = 6;
  const NAMED = 8;

  /* Runs that built something, newest first, by their target. */
  function byTarget(model) {
    const found = new Map();
    model.runs.filter((run) => run.builds && run.state !== "committed").forEach((run) => {
      const target = run.main.target || run.targets[0] || "";
      if (!found.has(target)) found.set(target, []);
      found.get(target).push(run);
    });
    return [...found.values()].slice(0, TARGETS);
  }

  function status(model) {
    const targets = byTarget(model);
    const waiting = waits(model);
    return h("div", { class: "status" },
      h("section", { class: "card", "aria-label": "Last builds" }, h("h2", {}, targets.length > 1 ? "Last build of each target" : "Last build"),
        targets.length ? targets.map((runs) => ofTarget(model, runs)) : h("p", { class: "quiet" }, "No command that builds is recorded here.")),
      h("section", { class: "card", "aria-label": "What waits" }, h("h2", {}, "What waits"), waiting.length ? h("ul", {}, waiting.map((each) => h("li", {}, each))) : h("p", {}, badge("fine"), " Nothing waits.")));
  }

  function ofTarget(model, runs) {
    const [newest] = runs;
    const left = leftOver(model, newest);
    return h("div", { class: `outcome ${left ? "failed" : Silt.kind(newest.state)}` },
      h("p", {}, badge(newest.state), " ", h("b", {}, runLink(newest)), " ", age(newest.last)),
      Silt.isBad(newest) ? [h("p", {}, history(runs)), causes(model, newest), affected(model, newest.recorded.failed)] : h("p", { class: "quiet" }, totals(newest)),
      left);
  }

  /* The failures of earlier runs for the target, of nodes and tests that no later command has run: a small good run hides none of them. */
  function leftOver(model, newest) {
    const found = [...model.newestFor(newest.main.target)].filter(([, { result, command }]) => result.state === "failed" && command.run !== newest);
    const ids = found.map(([id]) => id);
    return found.length ? [h("p", {}, badge("failed"), " earlier, and not run since: ", found.slice(0, NAMED).map(([id, { command }], at) => [at ? ", " : "", h("b", {}, nodeLink(model, id)), " (", runLink(command.run), ")"]),
      found.length > NAMED ? ` and ${count(found.length - NAMED)} more` : "", "."), affected(model, ids)] : null;
  }

  const totals = (run) => Silt.countsOf(run).map(([state, number]) => `${count(number)} ${state}`).join(", ");

  /* Since when no run of the target has succeeded. */
  function history(runs) {
    const at = runs.findIndex((run) => run.state === "succeeded");
    const number = at < 0 ? runs.length : at;
    const since = `No success since ${brief(runs[number - 1].started)} (${many(number, "run")})`;
    if (at < 0) return number > 1 ? `${since}; no earlier run is on this page.` : "No earlier run is on this page.";
    return [number > 1 ? `${since}; the last was ` : "The run before succeeded: ", runLink(runs[at]), "."];
  }

  function causes(model, run) {
    const failed = run.recorded.failed;
    const said = (id) => { const found = run.results.get(id); return found && found.message ? h("span", { class: "quiet" }, ` ${firstLine(found.message)}`) : null; };
    const problems = run.recorded.problems.map((each) => h("li", {}, short(Silt.briefIds(each), 200)));
    if (!failed.length && !problems.length) return null;
    return h("ul", { class: "causes" }, failed.slice(0, 4).map((id) => h("li", {}, h("b", {}, nodeLink(model, id)), said(id))), problems,
      failed.length > 4 ? h("li", {}, link(["run", run.id], `and ${many(failed.length - 4, "more failure")}`)) : null);
  }

  /* A message of dbt begins with a line that names the node again. */
  function firstLine(message) {
    const lines = message.split("\n").map((each) => each.trim()).filter(Boolean);
    const own = lines.length > 1 && /^\w+ Error in /.test(lines[0]) ? lines[1] : lines[0] || "";
    return short(Silt.briefIds(own), 160);
  }

  /* The nodes that a failure keeps old: those that failed, and all that read them or read what their tests doubt. */
  function affected(model, failed) {
    const owners = failed.map((id) => model.nodeById.get(id) || (model.testById.get(id) || {}).node).filter(Boolean);
    const all = [...new Set([...owners, ...Silt.descendants(model, owners)])].filter((each) => each.how !== "ephemeral" && each.kind !== "source");
    if (!all.length) return null;
    return h("p", {}, "Affected: ", all.slice(0, NAMED).map((each, at) => [at ? ", " : "", nodeLink(model, each.id), each.kind === "exposure" ? ` (${each.how || each.kind})` : ""]),
      all.length > NAMED ? [" and ", h("a", { href: `#/graph?focus=${encodeURIComponent(owners[0].id)}` }, `${count(all.length - NAMED)} more`)] : null, ".");
  }

  function waits(model) {
    const due = model.tables.filter((each) => Silt.findings(each).some((found) => found.endsWith(" files")));
    const damaged = model.tables.filter((each) => each.problem || each.doubt);
    const stale = model.nodes.filter((each) => each.state === "stale");
    return [...model.unpublished.map((each) => ofUnpublished(model, each)), ...stopped(model),
      damaged.length ? [badge("damaged"), " ", h("a", { href: "#/tables?state=damaged" }, many(damaged.length, "table")), " cannot be read completely."] : null,
      stale.length ? [badge("stale"), " ", h("a", { href: "#/graph?state=stale" }, many(stale.length, "node")), ` ${stale.length === 1 ? "is" : "are"} older than ${stale.length === 1 ? "its" : "their"} freshness allows.`] : null,
      due.length ? [badge("small files"), " ", h("a", { href: "#/tables?state=maintenance" }, many(due.length, "table")), ` ${due.length === 1 ? "needs" : "need"} maintenance (optimize or vacuum).`] : null].filter(Boolean);
  }

  function ofUnpublished(model, each) {
    const run = model.runById.get(each.run);
    const name = run ? runLink(run) : `run ${Silt.shortId(each.run)}, ${each.target}`;
    if (each.running) return [badge("running"), " ", name, ": its changes are not published yet."];
    const id = /^[\w.:-]+$/.test(each.run) ? each.run : `'${each.run.replace(/'/g, "'\\''")}'`;
    return [badge("held"), " ", name, " ", age(each.began), ": none of its changes is visible. Correct the cause and type the command again; or:", command(`silt publish ${id}`), command(`silt drop-run ${id}`)];
  }

  const stopped = (model) => model.runs.filter((run) => ["broken off", "interrupted"].includes(run.state)).slice(0, 3)
    .map((run) => [badge(run.state), " ", runLink(run), " ", age(run.last), ": type its command again to continue it."]);

  Object.assign(Silt, { status, totals, firstLine });
})();
