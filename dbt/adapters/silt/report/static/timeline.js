"use strict";
/* The timeline of a command by threads, and for what each node waited. */
(() => {
  const { h, s, time, took, kind } = Silt;
  const LEFT = 76;
  const LINE = 26;

  /* What must end before a node starts: its parents, their tests, and its own unit tests. A test waits for its node. */
  function before(model, id) {
    const node = model.nodeById.get(id);
    if (!node) return model.testById.has(id) && !id.startsWith("unit_test.") ? [model.testById.get(id).node.id] : [];
    const parents = node.parents.map((at) => model.nodes[at]);
    const own = node.tests.filter((test) => test.id.startsWith("unit_test."));
    return [...own, ...parents, ...parents.flatMap((each) => each.tests)].map((each) => each.id);
  }

  /* How long all threads were at work, from the start of the command until a moment. */
  function saturation(timed, threads) {
    const edges = timed.flatMap((each) => [[each.started, 1], [each.ended, -1]]).sort(([one, up], [other, down]) => one - other || up - down);
    const points = [];
    let [busy, sum, at] = [0, 0, edges.length ? edges[0][0] : 0];
    for (const [moment, change] of edges) {
      if (busy >= threads) sum += moment - at;
      points.push([moment, sum, busy + change >= threads]);
      busy += change;
      at = moment;
    }
    return (moment) => {
      let [low, high] = [0, points.length - 1];
      while (low < high) { const middle = (low + high + 1) >> 1; if (points[middle][0] <= moment) low = middle; else high = middle - 1; }
      if (!points.length || points[low][0] > moment) return 0;
      return points[low][1] + (points[low][2] ? moment - points[low][0] : 0);
    };
  }

  /* For each node of a command: the last that had to end before it, and how long it then waited while all threads were at work. */
  function waits(model, command) {
    const timed = command.nodes.filter((each) => each.started && each.ended);
    const full = saturation(timed, new Set(timed.map((each) => each.thread)).size);
    const first = timed.reduce((least, each) => Math.min(least, each.started), Infinity);
    return new Map(timed.map((each) => {
      const ended = before(model, each.node).map((id) => command.byNode.get(id)).filter((other) => other && other.ended && other.ended <= each.started + 5);
      const last = ended.reduce((most, other) => (most && most.ended >= other.ended ? most : other), null);
      const ready = last ? last.ended : first;
      return [each.node, { cause: last && last.node, thread: Math.max(0, full(each.started) - full(Math.min(ready, each.started))) }];
    }));
  }

  function timeline(model, command, nodes) {
    const timed = command.nodes.filter((each) => each.started && each.ended);
    if (!timed.length) return h("p", { class: "quiet" }, "Its threads and times are not kept: they are known for the last 60 commands of this project.");
    const from = Math.min(...timed.map((each) => each.started));
    const span = Math.max(...timed.map((each) => each.ended)) - from || 1;
    const threads = [...new Set(timed.map((each) => each.thread))].sort((one, other) => one.localeCompare(other, "en", { numeric: true }));
    const wide = Silt.room() - 30;
    const x = (ms) => LEFT + ((ms - from) / span) * (wide - LEFT - 4);
    const found = waits(model, command);
    const again = new Set(nodes.filter((each) => each.commits.some((commit) => commit.retries || commit.reruns)).map((each) => each.node));
    const lanes = threads.map((thread, at) => [s("text", { class: "name", x: LEFT - 6, y: at * LINE + 36, "text-anchor": "end" }, Silt.short(thread.replace(/ \(.*/, ""), 10)),
      s("line", { class: "rule", x1: LEFT, x2: wide, y1: at * LINE + 45, y2: at * LINE + 45 })]);
    const bars = timed.map((each) => bar(model, each, { x, y: threads.indexOf(each.thread) * LINE + 22, wait: found.get(each.node), isAgain: again.has(each.node) }));
    const states = [...new Set(timed.map((each) => each.state))];
    return h("div", { class: "chart" }, s("svg", { width: wide, height: threads.length * LINE + 30, viewBox: `0 0 ${wide} ${threads.length * LINE + 30}`, role: "group", "aria-label": "nodes by thread" }, axis(wide, span), lanes, bars),
      h("p", { class: "legend" }, states.map(Silt.badge), again.size ? h("span", { class: "again-mark" }, "● tried again") : null));
  }

  const axis = (wide, span) => (wide < 500 ? [0, 0.5, 1] : [0, 0.25, 0.5, 0.75, 1]).map((part) =>
    s("text", { class: "axis", x: LEFT + part * (wide - LEFT - 4), y: 12, "text-anchor": part === 1 ? "end" : part ? "middle" : "start" }, part ? took(part * span) : "0"));

  function bar(model, each, place) {
    const name = Silt.nameOf(model, each.node);
    const wide = Math.max(2, place.x(each.ended) - place.x(each.started) - 0.5);
    const [left, letters] = [place.x(each.started), Math.floor((wide - 10) / 6.6)];
    const node = model.nodeById.get(each.node) || (model.testById.get(each.node) || {}).node;
    const label = `${name}: ${each.state}, ${took(each.ended - each.started)}${waited(model, place.wait)}`;
    return s("a", { href: node ? `#/graph?focus=${encodeURIComponent(node.id)}` : null, "aria-label": label }, s("title", {}, label),
      s("rect", { class: `bar ${kind(each.state)}`, x: left, y: place.y, width: wide, height: LINE - 8, rx: 2 }),
      place.isAgain ? s("circle", { class: "again", cx: left + 5, cy: place.y + 5, r: 3 }) : null,
      letters >= 3 ? s("text", { class: "inside", x: left + 5, y: place.y + 13 }, Silt.short(`${Silt.sign(each.state)} ${name}`, letters)) : null);
  }

  function waited(model, wait) {
    if (!wait) return "";
    return `${wait.cause ? `; started after ${Silt.nameOf(model, wait.cause)}` : ""}${wait.thread >= 50 ? `; waited ${took(wait.thread)} for a free thread` : ""}`;
  }

  /* Without dbt's results, only the moments of commits are known. */
  function marks(run) {
    if (!run.commits.length) return h("p", { class: "quiet" }, "It committed nothing that is visible.");
    const wide = Silt.room() - 30;
    const from = run.commits[0].ms;
    const span = run.commits[run.commits.length - 1].ms - from || 1;
    const drawn = run.commits.map((each) => s("a", { href: `#/table/${encodeURIComponent(each.table)}`, "aria-label": `${each.table}@v${each.version}` },
      s("title", {}, `${each.table}@v${each.version} ${time(each.ms)}`), s("rect", { class: "bar built", x: 4 + ((each.ms - from) / span) * (wide - 12), y: 8, width: 4, height: 26 })));
    return h("div", { class: "chart" }, s("svg", { width: wide, height: 54, viewBox: `0 0 ${wide} 54`, role: "group", "aria-label": "commits over time" }, drawn,
      s("text", { class: "axis", x: 0, y: 50 }, time(from)), s("text", { class: "axis", x: wide, y: 50, "text-anchor": "end" }, time(from + span))));
  }

  Object.assign(Silt, { timeline, waits, marks });
})();
