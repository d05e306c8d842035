"use strict";
/* Draws bars, steps and ranges as SVG, at the width of the page, so that texts have the page's size. Colours are classes. */
(() => {
  const { h, s } = Silt;
  const LEFT = 68;
  const DURATIONS = [100, 200, 500, 1000, 2000, 5000, 10000, 15000, 30000, 60000, 120000, 300000, 600000, 900000, 1800000, 3600000, 7200000, 21600000, 43200000, 86400000];

  const text = (x, y, value, more) => s("text", { x, y, class: "axis", ...more }, value);
  const frame = (wide, tall, label, ...children) =>
    h("div", { class: "chart" }, s("svg", { width: wide, height: tall, viewBox: `0 0 ${wide} ${tall}`, role: "group", "aria-label": label }, children));

  /* Three to five round values from zero to at least the greatest. */
  function ticks(top, isDuration) {
    const scale = 10 ** Math.floor(Math.log10(Math.max(top, 1) / 4));
    const steps = isDuration ? DURATIONS : [1, 2, 2.5, 5, 10, 20].map((each) => each * scale).filter((each) => each >= 1 && Number.isInteger(each));
    const step = steps.find((each) => top / each <= 4) || Math.ceil(top / 4);
    const most = Math.max(1, Math.ceil(top / step));
    return Array.from({ length: most + 1 }, (_, at) => at * step);
  }

  /* Lines with their values at the left; the lowest is zero. Returns the height of a value above zero. */
  function scale(wide, tall, marks, format) {
    const high = (value) => (value / marks[marks.length - 1]) * (tall - 46);
    const lines = marks.map((mark) => [s("line", { class: mark ? "rule" : "rule zero", x1: LEFT, x2: wide, y1: tall - 24 - high(mark), y2: tall - 24 - high(mark) }),
      text(LEFT - 6, tall - 20 - high(mark), mark ? format(mark) : "0", { "text-anchor": "end" })]);
    return { high, lines };
  }

  /* Dates below the chart, as many as fit: items are {x, ms}. */
  function dates(wide, tall, items) {
    let right = -1e9;
    return items.map(({ x, ms }) => {
      const label = Silt.brief(ms);
      const half = label.length * 3.6;
      const at = Math.min(Math.max(x, LEFT + half - 8), wide - half);
      if (at - half < right + 12) return null;
      right = at + half;
      return text(at, tall - 6, label, { "text-anchor": "middle" });
    });
  }

  /* Bars next to one another, with their values if they fit. Items: {value, ms, label, short, state, href}. */
  function bars(label, items, format, options) {
    const [wide, tall] = [Silt.room(true), 190];
    const { high, lines } = scale(wide, tall, ticks(Math.max(...items.map((item) => item.value || 0), 1), options.isDuration), format);
    const step = Math.min(80, (wide - LEFT - 4) / Math.max(items.length, 1));
    const middle = (at) => LEFT + 2 + (at + 0.5) * step;
    const drawn = items.map((item, at) => {
      const height = item.value ? Math.max(3, high(item.value)) : 0;
      const caption = [item.isMarked ? Silt.sign(item.state) : "", step >= 54 ? item.short : ""].filter(Boolean).join(" ");
      return s("a", { href: item.href, "aria-label": item.label }, s("title", {}, item.label),
        s("rect", { class: "reach", x: middle(at) - step / 2, y: 8, width: step, height: tall - 32 }),
        s("rect", { class: `bar ${Silt.kind(item.state)}`, x: middle(at) - step * 0.4, y: tall - 24 - height, width: Math.max(1, step * 0.8), height }),
        caption && step >= 9 ? text(middle(at), tall - 28 - height, caption, { "text-anchor": "middle", class: "value" }) : null);
    });
    return frame(wide, tall, label, lines, drawn, dates(wide, tall, items.map((item, at) => ({ x: middle(at), ms: item.ms }))));
  }

  /* A value over time, which stays until the next point. Points: {ms, value, label}. */
  function steps(label, points, format) {
    const known = points.filter((point) => Silt.isKnown(point.value));
    if (known.length < 2) return h("p", { class: "quiet" }, "Only one version is known.");
    const [wide, tall] = [Silt.room(true), 190];
    const first = known[0].ms;
    const span = known[known.length - 1].ms - first || 1;
    const { high, lines } = scale(wide, tall, ticks(Math.max(...known.map((point) => point.value), 1)), format);
    const x = (ms) => LEFT + 6 + ((ms - first) / span) * (wide - LEFT - 14);
    const y = (point) => tall - 24 - high(point.value);
    let path = `M${x(known[0].ms)},${y(known[0])}`;
    known.slice(1).forEach((point) => { path += `H${x(point.ms).toFixed(1)}V${y(point).toFixed(1)}`; });
    const dots = known.length > 150 ? [] : known.map((point) =>
      s("circle", { class: "dot", cx: x(point.ms), cy: y(point), r: 3.5 }, s("title", {}, point.label)));
    const moments = [0, 0.25, 0.5, 0.75, 1].map((part) => ({ x: x(first + part * span), ms: first + part * span }));
    return frame(wide, tall, label, lines, s("path", { class: "line", d: path }), dots, dates(wide, tall, moments));
  }

  /* Bars below one another with their names. Items: {name, value, label}. */
  function rows(label, items) {
    const [wide, line] = [Math.min(Silt.room(true), 560), 24];
    const top = Math.max(...items.map((item) => item.value), 0) || 1;
    const drawn = items.map((item, at) => {
      const length = (item.value / top) * (wide - 300);
      return [text(130, at * line + 16, item.name, { "text-anchor": "end", class: "name" }),
        s("rect", { class: "bar", x: 138, y: at * line + 3, width: item.value ? Math.max(3, length) : 0, height: line - 6 }),
        text(144 + length, at * line + 16, item.label)];
    });
    return frame(wide, items.length * line + 4, label, drawn);
  }

  /* The ranges of files: a line for each, from its least to its greatest rank. */
  function ranges(label, pairs) {
    const [wide, line] = [Silt.room(true), 6];
    const drawn = pairs.map(([from, to], at) => s("rect", { class: "bar", x: from * (wide - 4), y: at * line + 1,
      width: Math.max(3, (to - from) * (wide - 4)), height: line - 2 }));
    return frame(wide, pairs.length * line + 22, label, drawn, text(0, pairs.length * line + 16, "least value"),
      text(wide, pairs.length * line + 16, "greatest value", { "text-anchor": "end" }));
  }

  Silt.charts = { bars, steps, rows, ranges, text, ticks };
})();
