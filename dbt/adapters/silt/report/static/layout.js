"use strict";
/* Places the nodes of a graph in columns from left to right. An edge over several columns has a lane in each, so it runs beside boxes. */
(() => {
  const TALL = 44;
  const LANE = 6;
  const GAP = 16;
  const BETWEEN = 40;
  const LEAST = 70;
  const SWEEPS = 6;

  /* Each node is right of its parents; a node without parents is next to its first child. */
  function depths(nodes, chosen, inside) {
    const depth = new Map(chosen.map((each) => [each.number, 0]));
    const left = new Map(chosen.map((each) => [each.number, each.parents.filter((at) => inside.has(at)).length]));
    const ready = chosen.filter((each) => !left.get(each.number));
    for (const each of ready) {
      for (const at of each.children.filter((child) => inside.has(child))) {
        depth.set(at, Math.max(depth.get(at), depth.get(each.number) + 1));
        left.set(at, left.get(at) - 1);
        if (!left.get(at)) ready.push(nodes[at]);
      }
    }
    chosen.filter((each) => !each.parents.some((at) => inside.has(at))).forEach((each) => {
      const children = each.children.filter((at) => inside.has(at)).map((at) => depth.get(at));
      if (children.length) depth.set(each.number, Math.min(...children) - 1);
    });
    return depth;
  }

  /* Columns of items: {node} is a box, {node: null} a lane; `before` and `after` are their neighbours. */
  function columnsOf(nodes, chosen) {
    const inside = new Set(chosen.map((each) => each.number));
    const depth = depths(nodes, chosen, inside);
    const columns = [];
    const item = (node, at) => {
      const made = { node, column: at, before: [], after: [], tall: node ? TALL : LANE, y: 0 };
      (columns[at] = columns[at] || []).push(made);
      return made;
    };
    const join = (one, other) => { one.after.push(other); other.before.push(one); };
    const boxes = new Map(chosen.map((each) => [each.number, item(each, depth.get(each.number))]));
    for (const parent of chosen) {
      const children = parent.children.filter((at) => inside.has(at)).map((at) => boxes.get(at)).filter((child) => child.column > depth.get(parent.number));
      const last = Math.max(...children.map((child) => child.column), 0);
      let tip = boxes.get(parent.number);
      for (let at = tip.column + 1; at <= last; at += 1) {
        children.filter((child) => child.column === at).forEach((child) => join(tip, child));
        if (at < last) { const lane = item(null, at); join(tip, lane); tip = lane; }
      }
    }
    return Array.from(columns, (column) => column || []);
  }

  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

  /* Sorts each column by the means of its neighbours, forwards and backwards, which removes most crossings. */
  function sortColumns(columns) {
    columns.forEach((column) => column.forEach((each, at) => { each.rank = at; }));
    for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
      const side = sweep % 2 ? "after" : "before";
      (sweep % 2 ? [...columns].reverse() : columns).forEach((column) => {
        const wanted = new Map(column.map((each) => [each, each[side].length ? mean(each[side].map((other) => other.rank)) : each.rank]));
        column.sort((one, other) => wanted.get(one) - wanted.get(other) || one.rank - other.rank);
        column.forEach((each, at) => { each.rank = at; });
      });
    }
  }

  /* Moves each item towards the middle of its neighbours, without changing the order or letting two touch. */
  function place(columns) {
    for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
      const sides = sweep ? (sweep % 2 ? ["after"] : ["before"]) : ["before"];
      (sweep % 2 ? [...columns].reverse() : columns).forEach((column) => {
        let floor = -Infinity;
        const wanted = column.map((each) => {
          const near = sides.flatMap((side) => each[side]);
          return near.length ? mean(near.map((other) => other.y + other.tall / 2)) - each.tall / 2 : null;
        });
        column.forEach((each, at) => {
          const open = wanted[at] ?? (sweep ? each.y : 0);
          each.y = Math.max(open, floor);
          floor = each.y + each.tall + GAP;
        });
        const shifts = column.flatMap((each, at) => (wanted[at] === null ? [] : [wanted[at] - each.y]));
        if (shifts.length) { const by = mean(shifts); column.forEach((each) => { each.y += by; }); }
      });
    }
    const top = Math.min(...columns.flat().map((each) => each.y));
    columns.flat().forEach((each) => { each.y += 8 - top; });
  }

  const pen = document.createElement("canvas").getContext("2d");
  pen.font = "12px system-ui, sans-serif";
  const width = (text) => pen.measureText(text).width;

  /* Returns boxes with their places, the edges as paths, and the size of the whole. */
  function layout(nodes, chosen, textOf) {
    const columns = columnsOf(nodes, chosen);
    sortColumns(columns);
    place(columns);
    let x = 8;
    columns.forEach((column) => {
      const wide = 28 + Math.max(...column.filter((each) => each.node).flatMap((each) => textOf(each.node).map(width)), LEAST);
      column.forEach((each) => { each.x = x; each.wide = wide; });
      x += wide + BETWEEN;
    });
    const items = columns.flat();
    const middle = (each) => each.y + each.tall / 2;
    const lanes = items.filter((each) => !each.node).map((each) => `M${each.x},${middle(each)}H${each.x + each.wide}`);
    const edges = items.flatMap((each) => each.after.map((other) => {
      const [x1, y1, x2, y2] = [each.x + each.wide, middle(each), other.x, middle(other)];
      const head = other.node ? `M${x2 - 7},${y2 - 4}L${x2},${y2}L${x2 - 7},${y2 + 4}` : "";
      return `M${x1},${y1}C${x1 + BETWEEN / 2},${y1} ${x2 - BETWEEN / 2},${y2} ${x2},${y2}${head}`;
    }));
    const tall = Math.max(...items.map((each) => each.y + each.tall)) + 8;
    return { boxes: items.filter((each) => each.node), edges: [...lanes, ...edges], wide: x - BETWEEN + 8, tall };
  }

  Silt.layout = layout;
})();
