"use strict";
/* The graph of models: columns by depth, the nodes of each near their parents, and the details of one. */
(() => {
  const { h, s, count, time, took, link, badge, filter, choice, section, facts, grid } = Silt;
  const STATES = ["built", "built earlier", "skipped", "blocked", "failed", "warned", "stale", "fresh", "not checked", "not built"];
  const MOST = 1500;
  const WIDE = 200;
  const TALL = 34;

  function view(model, query) {
    const place = h("div");
    const draw = () => place.replaceChildren(...drawn(model, query));
    draw();
    const kinds = [...new Set(model.nodes.map((each) => each.kind))].sort();
    const states = STATES.filter((state) => model.nodes.some((each) => each.state === state));
    return [h("h1", {}, "Graph of models"),
      h("div", { class: "filters" }, filter("Find", "q", query, draw), choice("State", "state", query, states, draw), choice("Kind", "kind", query, kinds, draw),
        choice("Around", "around", query, ["1", "2", "4"], draw)),
      h("p", { class: "legend" }, states.map((state) => h("span", {}, badge(state), ` ${count(model.nodes.filter((each) => each.state === state).length)} `)), model.nodes.some((each) => each.failing.length) ? h("span", {}, "dashed: a test of it failed") : null), place];
  }

  function drawn(model, query) {
    if (!model.nodes.length) return [h("p", { class: "quiet" }, "dbt's manifest.json is missing: the graph is unknown.")];
    const focus = model.nodeById.get(query.get("focus") || "");
    const chosen = focus ? around(model, focus, Number(query.get("around")) || 99) : matching(model, query);
    const parts = [];
    if (focus) parts.push(details(model, focus, query));
    if (chosen.length > MOST) parts.push(h("p", { class: "quiet" }, `${count(chosen.length)} nodes: the first ${count(MOST)} are drawn. Find fewer.`));
    parts.push(chosen.length ? picture(model, chosen.slice(0, MOST), focus) : h("p", { class: "quiet" }, "No node."));
    return parts;
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

  /* Each node is right of its parents; within a column it is near the middle of them. */
  function placed(model, chosen) {
    const inside = new Set(chosen.map((each) => each.number));
    const depth = new Map();
    const left = new Map(chosen.map((each) => [each.number, each.parents.filter((at) => inside.has(at)).length]));
    let ready = chosen.filter((each) => !left.get(each.number));
    ready.forEach((each) => depth.set(each.number, 0));
    while (ready.length) {
      const next = [];
      for (const each of ready) {
        for (const at of each.children.filter((child) => inside.has(child))) {
          depth.set(at, Math.max(depth.get(at) || 0, depth.get(each.number) + 1));
          left.set(at, left.get(at) - 1);
          if (!left.get(at)) next.push(model.nodes[at]);
        }
      }
      ready = next;
    }
    const columns = [];
    chosen.forEach((each) => { const at = depth.get(each.number) || 0; (columns[at] = columns[at] || []).push(each); });
    const row = new Map();
    columns.forEach((column) => {
      const middle = (each) => {
        const rows = each.parents.filter((at) => row.has(at)).map((at) => row.get(at));
        return rows.length ? rows.reduce((sum, value) => sum + value, 0) / rows.length : 0;
      };
      const order = column.map((each) => [middle(each), each]);
      order.sort(([one, first], [other, second]) => one - other || first.name.localeCompare(second.name));
      order.forEach(([, each], at) => row.set(each.number, at));
    });
    return { inside, depth, row, columns };
  }

  function picture(model, chosen, focus) {
    const { inside, depth, row, columns } = placed(model, chosen);
    const x = (at) => (depth.get(at) || 0) * (WIDE + 50) + 4;
    const y = (at) => row.get(at) * TALL + 4;
    const edges = chosen.flatMap((each) => each.parents.filter((at) => inside.has(at)).map((at) => {
      const [x1, y1, x2, y2] = [x(at) + WIDE, y(at) + 12, x(each.number), y(each.number) + 12];
      return s("path", { class: "edge", d: `M${x1},${y1}C${x1 + 25},${y1} ${x2 - 25},${y2} ${x2},${y2}` });
    }));
    const boxes = chosen.map((each) => s("a", { href: `#/graph?focus=${encodeURIComponent(each.id)}`, "aria-label": `${each.name}: ${each.state}` },
      s("rect", { class: `node ${each.state.replace(/ /g, "-")}${each === focus ? " focus" : each.failing.length ? " distrusted" : ""}`, x: x(each.number), y: y(each.number), width: WIDE, height: TALL - 10, rx: 4 }, s("title", {}, `${each.name}: ${each.state}${each.failing.length ? `, ${count(each.failing.length)} tests failed` : ""}`)),
      s("text", { class: "inside", x: x(each.number) + 12, y: y(each.number) + 16 }, Silt.short(each.name, 27))));
    const [wide, tall] = [columns.length * (WIDE + 50), Math.max(...columns.map((column) => column.length)) * TALL + 8];
    return h("div", { class: "graph", tabindex: "0", role: "group", "aria-label": "graph" }, s("svg", { width: wide, height: tall, viewBox: `0 0 ${wide} ${tall}` }, edges, boxes));
  }

  function details(model, node, query) {
    const result = model.results && model.results.byNode.get(node.id);
    const table = node.table && model.tableByName.get(node.table);
    const close = h("a", { href: "#/graph", class: "close", "aria-label": "show all nodes" }, "all nodes");
    const others = (numbers) => numbers.map((at) => [h("a", { href: `#/graph?focus=${encodeURIComponent(model.nodes[at].id)}` }, model.nodes[at].name), " "]);
    return h("div", { class: "panel" }, close, h("h2", {}, node.name, " ", badge(node.state)), node.about ? h("p", {}, node.about) : null,
      facts([["kind", [node.how, node.kind].filter(Boolean).join(" ")], ["file", node.path],
        ["table", table ? link(["table", node.table], node.table) : node.table],
        ["last commit", node.last ? [`${time(node.last.ms)}, ${took(model.made - node.last.ms)} ago, run `, link(["run", node.last.run || ""], node.last.run || "")] : null],
        ["to be rebuilt after", node.after ? took(node.after) : null],
        ["newest row", node.fresh ? `${time(node.fresh.newest)}, seen ${time(node.fresh.looked)}: ${node.fresh.status}` : null],
        ["tests", node.tests.length ? `${count(node.tests.length)}, ${count(node.failing.length)} failed` : null],
        ["blocked by", node.state === "blocked" ? Silt.blockedBy(model, node.id) : null], ["reads", node.parents.length ? others(node.parents) : null], ["is read by", node.children.length ? others(node.children) : null]]),
      result && result.message ? h("pre", {}, result.message) : null);
  }

  function notes(model) {
    const damaged = model.tables.filter((each) => each.problem || each.doubt);
    return [h("h1", {}, "Notes"), model.notes.length ? h("ul", {}, model.notes.map((note) => h("li", {}, note))) : h("p", { class: "quiet" }, "Everything was read."),
      section("Tables that are damaged or could not be read", grid([
        { name: "table", value: (each) => each.name, cell: (each) => link(["table", each.name], each.name) },
        { name: "problem", value: (each) => each.problem || each.doubt }], damaged, { empty: "None." })),
      section("This page", facts([["made", `${time(model.made)} UTC`], ["by", `dbt-silt ${model.by}`], ["databases", model.databases.join(", ")],
        ["manifest.json is of", model.manifestMade ? `${time(model.manifestMade)} UTC` : null],
        ["run_results.json is of", model.results ? [link(["run", model.results.run], model.results.run), ` (${model.results.command || "dbt"})`] : null]]))];
  }

  Object.assign(Silt, { graphView: view, notesView: notes });
})();
