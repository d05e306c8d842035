"use strict";
/* Makes elements. Every text becomes a text node: nothing in the data is ever markup. */
(() => {
  const SVG = "http://www.w3.org/2000/svg";

  function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (typeof value === "function") element.addEventListener(name, value);
      else element.setAttribute(name, value === true ? "" : String(value));
    }
    for (const child of children.flat(Infinity)) {
      if (child === null || child === undefined || child === false) continue;
      element.append(child instanceof Node ? child : document.createTextNode(String(child)));
    }
    return element;
  }

  const h = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);
  const s = (name, attributes, ...children) => fill(document.createElementNS(SVG, name), attributes, children);

  /* Each state has a sign and a meaning: a colour is never the only difference. */
  const SIGNS = {
    succeeded: ["✓", "everything under its id has succeeded"], failed: ["✗", "it failed, or a test of it did, or an error ended the command"],
    held: ["‖", "built on the run's branch, but not published"], interrupted: ["▫", "stopped by Ctrl-C or SIGTERM"],
    "broken off": ["÷", "its process was killed: only its start is recorded"], running: ["▸", "it is at work"],
    ended: ["·", "an earlier version has recorded its end without a result"], committed: ["•", "no command of the run is recorded here, as for a run of another machine"],
    built: ["✓", "built by the last command that selected it"], "built earlier": ["○", "built by a command before the last"],
    reused: ["↺", "not built, because its table already holds what a build would write"],
    "done earlier": ["=", "not built again, because an earlier command of the same run has done it"],
    skipped: ["→", "not run by dbt, because a node or a test before it failed"], passed: ["✓", "the test passed"], warned: ["!", "the test returned rows, as a warning"],
    stale: ["◷", "older than its freshness allows"], fresh: ["✓", "new enough for its freshness"], "not checked": ["?", "`dbt source freshness` has not checked it"],
    "not built": ["✗", "its table or view is missing"], "not known": ["?", "no command on this page has run it"],
    ephemeral: ["◇", "part of the queries that read it: it has no table"], fine: ["✓", "nothing before it failed"], affected: ["!", "a node or a test before it failed"],
    damaged: ["✗", "its log or its files cannot be read"], "small files": ["▤", "OPTIMIZE would pack many small files"],
    "unused files": ["▨", "VACUUM would delete many files that no version within the retention needs"],
    "overlapping files": ["≋", "a look-up of a key reads many files"], empty: ["∅", "it has no row"],
  };
  const sign = (state) => (SIGNS[state] ? SIGNS[state][0] : "·");
  const meaning = (state) => (SIGNS[state] ? SIGNS[state][1] : null);
  const kind = (state) => state.replace(/ /g, "-");
  const badge = (state) => h("span", { class: `badge ${kind(state)}`, title: meaning(state) }, h("span", { "aria-hidden": "true" }, `${sign(state)} `), state);

  const link = (address, label, attributes) => h("a", { href: `#/${address.map(encodeURIComponent).join("/")}`, ...attributes }, label);
  const nodeLink = (model, id) => {
    const owner = model.nodeById.has(id) ? id : model.testById.has(id) ? model.testById.get(id).node.id : null;
    const name = Silt.nameOf(model, id);
    return owner ? h("a", { href: `#/graph?focus=${encodeURIComponent(owner)}`, title: id }, name) : h("span", { title: id }, name);
  };
  const runLink = (run) => link(["run", run.id], Silt.runName(run), { title: run.id });
  const age = (ms) => h("time", { class: "age", "data-ms": ms, title: Silt.time(ms) }, Silt.ago(ms));

  const tile = (label, value, more) => h("div", { class: "tile" }, h("b", {}, value), h("span", {}, label), more ? h("small", {}, more) : null);
  const facts = (pairs) => h("dl", {}, pairs.filter(([, value]) => Silt.isKnown(value) && value !== "").map(
    ([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
  const section = (title, ...children) => h("section", {}, h("h2", {}, title), children);
  const command = (text) => h("code", { class: "command" }, text);
  const legend = (states) => h("p", { class: "legend" }, states.map(badge));

  /* The width for a chart in pixels, so that its texts have the page's size: of the whole view, or of one of two columns. */
  function room(isHalf) {
    const all = Math.min(document.documentElement.clientWidth, 1760) - 40;
    return isHalf && all >= 872 ? Math.floor((all - 32) / 2) : all;
  }

  Object.assign(Silt, { h, s, sign, meaning, kind, badge, link, nodeLink, runLink, age, tile, facts, section, command, legend, room });
})();
