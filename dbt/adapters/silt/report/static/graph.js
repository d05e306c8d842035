"use strict";
/* The graph of models: kinds, tests and states of the nodes, and the details of one. */
(() => {
  const { h, s, count, many, time, took, link, badge, filter, choice, facts, age, nodeLink } = Silt;
  const STATES = ["failed", "skipped", "affected", "stale", "held", "warned", "built", "built earlier", "reused", "done earlier", "fresh", "fine", "ephemeral", "not checked", "not built", "not known"];
  const MOST = 1500;
  const LONGEST = 34;

  function view(model, query) {
    const place = h("div");
    const draw = () => place.replaceChildren(...drawn(model, query).filter(Boolean));
    draw();
    const kinds = [...new Set(model.nodes.map((each) => each.kind))].sort();
    const known = new Set(model.nodes.map((each) => each.state));
    const states = [...STATES.filter((state) => known.has(state)), ...[...known].filter((state) => !STATES.includes(state))];
    return [h("h1", {}, "Graph of models"), asOf(model),
      h("div", { class: "filters" }, filter("Find", "q", query, draw), choice("State", "state", query, states, draw), choice("Kind", "kind", query, kinds, draw),
        choice("Steps around", "around", query, ["1", "2", "4"], draw)),
      h("p", { class: "legend" }, states.map((state) => h("span", {}, badge(state), ` ${count(model.nodes.filter((each) => each.state === state).length)}`)),
        model.nodes.some((each) => each.failing.length) ? h("span", {}, "dashed: a test of it failed") : null), place];
  }

  function asOf(model) {
    if (!model.last) return h("p", { class: "quiet" }, "No command that builds is recorded here: states are those of the tables.");
    const { last } = model;
    return h("p", {}, "After ", Silt.runLink(last.run), ` (${time(last.started)}, `, age(last.started), "). A node that it did not select has the state after the last command for ",
      last.target ? h("b", {}, last.target) : "its target", " that did.");
  }

  function drawn(model, query) {
    if (!model.nodes.length) return [h("p", { class: "quiet" }, "dbt's manifest.json is missing: the graph is unknown.")];
    const focus = model.nodeById.get(query.get("focus") || "");
    const chosen = focus ? around(model, focus, Number(query.get("around")) || 99) : matching(model, query);
    return [focus ? details(model, focus) : null,
      chosen.length > MOST ? h("p", { class: "quiet" }, `${many(chosen.length, "node")}: the first ${count(MOST)} are drawn. Find fewer.`) : null,
      chosen.length ? picture(model, chosen.slice(0, MOST), focus) : h("p", { class: "quiet" }, "No node.")];
  }

  function matching(model, query) {
    const wanted = (query.get("q") || "").toLowerCase();
    const [state, kind] = [query.get("state"), query.get("kind")];
    const found = model.nodes.filter((each) => (!state || each.state === state) && (!kind || each.kind === kind) &&
      `${each.name} ${each.path} ${each.table || ""}`.toLowerCase().includes(wanted));
    const steps = wanted || state || kind ? Number(query.get("around")) || 0 : 0;
    return steps ? [...new Set(found.flatMap((each) => around(model, each, steps)))] : found;
  }

  /* The ancestors and descendants of a node, so many steps away at most. */
  function around(model, node, steps) {
    const found = new Set([node]);
    for (const side of ["parents", "children"]) {
      let edge = [node];
      for (let step = 0; step < steps && edge.length; step += 1) {
        edge = edge.flatMap((each) => each[side].map((at) => model.nodes[at])).filter((each) => !found.has(each));
        edge.forEach((each) => found.add(each));
      }
    }
    return [...found];
  }

  const kindOf = (node) => (node.kind === "model" ? node.how || "model" : node.kind === "exposure" ? `exposure: ${node.how || "?"}` : node.kind);
  const testsOf = (node) => (!node.tests.length ? "" : node.failing.length ? `✗ ${count(node.failing.length)} of ${many(node.tests.length, "test")}` : many(node.tests.length, "test"));
  const textOf = (node) => [`${Silt.sign(node.state)} ${Silt.short(node.name, LONGEST)}`, [kindOf(node), testsOf(node)].filter(Boolean).join(" · ")];

  function box(place, focus) {
    const { node, x, y, wide, tall } = place;
    const [name, more] = textOf(node);
    const state = Silt.kind(node.state);
    const label = [`${node.name}: ${node.state}`, kindOf(node), testsOf(node)].filter(Boolean).join(", ");
    return s("a", { href: `#/graph?focus=${encodeURIComponent(node.id)}`, "aria-label": label }, s("title", {}, label),
      s("rect", { class: `node ${state}${node === focus ? " focus" : node.failing.length ? " distrusted" : ""}`, x, y, width: wide, height: tall, rx: node.kind === "source" ? 16 : node.kind === "exposure" ? 0 : 5 }),
      s("rect", { class: `stripe ${state}`, x: x + 6, y: y + 6, width: 5, height: tall - 12, rx: 2 }),
      s("text", { class: "name", x: x + 18, y: y + 19 }, name), s("text", { class: "axis", x: x + 18, y: y + 35 }, more));
  }

  /* The picture in the size that fits, and buttons for others. */
  function picture(model, chosen, focus) {
    const { boxes, edges, wide, tall } = Silt.layout(model.nodes, chosen, textOf);
    const drawing = s("svg", { viewBox: `0 0 ${wide} ${tall}`, role: "group", "aria-label": "models with their states" },
      edges.map((d) => s("path", { class: "edge", d })), boxes.map((each) => box(each, focus)));
    const fit = () => Math.max(0.1, Math.min(1, (Silt.room() - 20) / wide, (window.innerHeight - 150) / tall));
    let scale = fit();
    const zoom = (to) => { scale = Math.min(4, Math.max(0.1, to)); drawing.setAttribute("width", wide * scale); drawing.setAttribute("height", tall * scale); };
    zoom(scale);
    const button = (label, text, to) => h("button", { type: "button", class: "more", "aria-label": label, title: label, click: () => zoom(to()) }, text);
    return h("div", {}, h("div", { class: "zoom" }, button("zoom out", "−", () => scale / 1.3), button("zoom in", "+", () => scale * 1.3), button("show all of it", "Fit", fit), button("show texts in their usual size", "100 %", () => 1)),
      h("div", { class: "graph", tabindex: "0", role: "group", "aria-label": "graph" }, drawing));
  }

  function details(model, node) {
    const table = node.table && model.tableByName.get(node.table);
    const others = (numbers) => numbers.map((at, number) => [number ? ", " : "", nodeLink(model, model.nodes[at].id)]);
    const { seen, last, fresh } = node;
    const isFailed = (id) => { const found = model.newest.get(id); return Boolean(found) && found.result.state === "failed"; };
    const cause = node.state === "skipped" ? Silt.skippedBy(model, node.id, isFailed) : null;
    return h("div", { class: "panel" }, h("a", { href: "#/graph", class: "close" }, "show all nodes"), h("h2", {}, node.name, " ", badge(node.state)), node.about ? h("p", {}, node.about) : null,
      facts([["kind", kindOf(node)], ["file", node.path], ["table", table ? link(["table", node.table], node.table) : node.isView ? `${node.table} (view)` : node.table],
        ["last result", seen ? [badge(seen.result.state), " by ", Silt.runLink(seen.command.run), " ", age(seen.result.ended || seen.command.started)] : null],
        ["because", cause ? [nodeLink(model, cause), " failed"] : null],
        ["last commit", last ? [`${time(last.ms)} `, age(last.ms)] : null], ["to be rebuilt after", node.after ? took(node.after) : null],
        ["newest row", fresh ? `${time(fresh.newest)}, seen ${time(fresh.looked)}: ${fresh.status}` : null],
        ["reads", node.parents.length ? others(node.parents) : null], ["is read by", node.children.length ? others(node.children) : null]]),
      tests(model, node), seen && seen.result.message ? h("pre", {}, seen.result.message) : null);
  }

  function tests(model, node) {
    if (!node.tests.length) return null;
    const each = (test) => {
      const found = model.newest.get(test.id);
      const said = found && found.result.state === "failed" && found.result.message ? `: ${Silt.firstLine(found.result.message)}` : "";
      return h("li", { title: test.id }, badge(found ? found.result.state : "not known"), ` ${Silt.nameOf(model, test.id)}${said}`);
    };
    const inOrder = [...node.failing, ...node.tests.filter((test) => !node.failing.includes(test))];
    return h("details", { open: node.failing.length > 0 }, h("summary", {}, testsOf(node)), h("ul", { class: "causes" }, inOrder.map(each)));
  }

  Object.assign(Silt, { graphView: view });
})();
