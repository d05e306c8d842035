"use strict";
/* Draws bars, steps and ranges as SVG. Colours are classes: the style sheet knows light and dark. */
(() => {
  const { h, s } = Silt;
  const WIDTH = 720;

  const frame = (height, label, ...children) =>
    h("div", { class: "chart" }, s("svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": label }, children));
  const text = (x, y, value, more) => s("text", { x, y, ...more }, value);

  /* Bars next to one another. Items: {value, label, kind, href}. */
  function bars(label, items, format) {
    const height = 150;
    const top = Math.max(...items.map((item) => item.value || 0), 0) || 1;
    const step = Math.min(60, WIDTH / Math.max(items.length, 1));
    const drawn = items.map((item, at) => {
      const tall = Math.max(2, ((item.value || 0) / top) * (height - 30));
      const bar = s("rect", { class: `bar ${item.kind || ""}`, x: at * step + step * 0.1, y: height - 12 - tall,
        width: Math.max(1, step * 0.8), height: tall }, s("title", {}, item.label));
      return item.href ? s("a", { href: item.href, "aria-label": item.label }, bar) : bar;
    });
    return frame(height, label, text(0, 11, format(top), { class: "axis" }),
      s("line", { class: "rule", x1: 0, x2: WIDTH, y1: height - 12, y2: height - 12 }), drawn);
  }

  /* A value over time, which stays until the next point. Points: {ms, value, label}. */
  function steps(label, points, format) {
    const known = points.filter((point) => Silt.isKnown(point.value));
    if (known.length < 2) return h("p", { class: "quiet" }, "Fewer than two versions are known.");
    const height = 130;
    const first = known[0].ms;
    const span = known[known.length - 1].ms - first || 1;
    const top = Math.max(...known.map((point) => point.value)) || 1;
    const x = (point) => 4 + ((point.ms - first) / span) * (WIDTH - 8);
    const y = (point) => height - 16 - (point.value / top) * (height - 36);
    let path = `M${x(known[0])},${y(known[0])}`;
    known.slice(1).forEach((point) => { path += `H${x(point).toFixed(1)}V${y(point).toFixed(1)}`; });
    const dots = known.length > 150 ? [] : known.map((point) =>
      s("circle", { class: "dot", cx: x(point), cy: y(point), r: 3 }, s("title", {}, point.label)));
    return frame(height, label, text(0, 11, format(top), { class: "axis" }),
      s("line", { class: "rule", x1: 0, x2: WIDTH, y1: height - 16, y2: height - 16 }),
      s("path", { class: "line", d: path }), dots,
      text(0, height - 3, Silt.time(first), { class: "axis" }),
      text(WIDTH, height - 3, Silt.time(known[known.length - 1].ms), { class: "axis", "text-anchor": "end" }));
  }

  /* Bars below one another with their names. Items: {name, value, label}. */
  function rows(label, items, format) {
    const top = Math.max(...items.map((item) => item.value), 0) || 1;
    const line = 22;
    const drawn = items.map((item, at) => {
      const wide = (item.value / top) * (WIDTH - 300);
      return s("g", {}, text(150, at * line + 15, Silt.short(item.name, 22), { "text-anchor": "end", class: "name" }),
        s("rect", { class: "bar", x: 158, y: at * line + 3, width: Math.max(item.value ? 2 : 0, wide), height: line - 6 }, s("title", {}, item.label)),
        text(164 + wide, at * line + 15, item.label, { class: "axis" }));
    });
    return frame(items.length * line + 4, label, drawn);
  }

  /* The ranges of files: a line for each, from its least to its greatest rank. */
  function ranges(label, pairs) {
    const line = 5;
    const drawn = pairs.map(([from, to], at) => s("rect", { class: "bar", x: from * (WIDTH - 4), y: at * line + 1,
      width: Math.max(2, (to - from) * (WIDTH - 4)), height: line - 2 }));
    return frame(pairs.length * line + 4, label, drawn);
  }

  Silt.charts = { bars, steps, rows, ranges, WIDTH };
})();
