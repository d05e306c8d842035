"use strict";
/* Spells values: numbers, sizes, times in the chosen zone, ages, and the names of nodes, tests and runs. */
(() => {
  const UNKNOWN = "–";
  const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
  const MINUTE = 60000;
  const zone = { isUtc: false };

  const isKnown = (value) => value !== null && value !== undefined;
  const count = (value) => (isKnown(value) ? value.toLocaleString("en-US") : UNKNOWN);
  const many = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
  const short = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

  function size(value) {
    if (!isKnown(value)) return UNKNOWN;
    const units = ["B", "KB", "MB", "GB", "TB"];
    let at = 0;
    let left = value;
    while (left >= 1000 && at < units.length - 1) { left /= 1000; at += 1; }
    return `${at ? left.toFixed(1) : left} ${units[at]}`;
  }

  const two = (number) => String(number).padStart(2, "0");

  function parts(ms) {
    const moment = new Date(ms);
    if (!ms || Number.isNaN(moment.getTime())) return null;
    const get = (name) => moment[`get${zone.isUtc ? "UTC" : ""}${name}`]();
    return { year: get("FullYear"), month: get("Month"), day: get("Date"), clock: `${two(get("Hours"))}:${two(get("Minutes"))}`, seconds: two(get("Seconds")) };
  }

  /* The whole moment, to the second. */
  function time(ms) {
    const found = parts(ms);
    return found ? `${found.year}-${two(found.month + 1)}-${two(found.day)} ${found.clock}:${found.seconds}` : UNKNOWN;
  }

  /* The moment as briefly as it is clear: the clock time of today, else with the day, else with the year. */
  function brief(ms) {
    const [found, now] = [parts(ms), parts(Date.now())];
    if (!found) return UNKNOWN;
    const day = `${found.day} ${MONTHS[found.month]}`;
    if (found.year !== now.year) return `${day} ${found.year}`;
    return found.day === now.day && found.month === now.month ? found.clock : `${day} ${found.clock}`;
  }

  function ago(ms) {
    if (!ms) return UNKNOWN;
    const past = Date.now() - ms;
    if (past < MINUTE) return "just now";
    if (past < 60 * MINUTE) return `${Math.floor(past / MINUTE)} min ago`;
    if (past < 2880 * MINUTE) return `${Math.floor(past / (60 * MINUTE))} h ago`;
    return `${Math.floor(past / (1440 * MINUTE))} days ago`;
  }

  function took(ms) {
    if (!isKnown(ms)) return UNKNOWN;
    if (ms < 1000) return `${Math.round(ms)} ms`;
    const seconds = Math.round(ms / 1000);
    if (seconds < 60) return `${(ms / 1000).toFixed(ms % 1000 ? 1 : 0)} s`;
    if (seconds < 3600) return `${Math.floor(seconds / 60)} min${seconds % 60 ? ` ${seconds % 60} s` : ""}`;
    const hours = ms / 3600000;
    return hours < 48 ? `${hours.toFixed(hours % 1 ? 1 : 0)} h` : `${(hours / 24).toFixed(1)} days`;
  }

  /* A run's id: the first eight characters of an id that dbt has drawn; an id that a person has chosen is meant to be read. */
  const UUID = /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g;
  const briefIds = (text) => text.replace(UUID, (id) => id.slice(0, 8));
  const shortId = (id) => short(briefIds(id), 40);

  /* The name of a node, or of a test by what it tests, without dbt's prefix and hash. */
  function nameOf(model, id) {
    const [node, test] = [model.nodeById.get(id), model.testById.get(id)];
    if (node) return node.name;
    if (test) return `${id.startsWith("unit_test.") ? "unit test " : ""}${test.kind} of ${test.node.name}${test.column ? `.${test.column}` : ""}`;
    const [kind, , ...rest] = String(id).split(".");
    return (kind === "test" ? rest[0] : rest.join(".")) || String(id);
  }

  /* A table's name without the database, if the warehouse has one database. */
  const tableName = (model, name) => (model.databases.length === 1 && name.startsWith(`${model.databases[0]}.`) ? name.slice(model.databases[0].length + 1) : name);

  const startOf = (run) => (run.main || run).started;

  /* "dbt build, nightly, 20:27": what was typed last to build something, for which target, and when. */
  function runName(run) {
    return [run.main ? `dbt ${run.main.which}` : run.clients.length ? `session of ${run.clients[0]}` : "run", run.targets.join(" and "), brief(startOf(run))].filter(Boolean).join(", ");
  }

  Object.assign(Silt, { zone, UNKNOWN, isKnown, count, many, short, size, time, brief, ago, took, briefIds, shortId, nameOf, tableName, startOf, runName });
})();
