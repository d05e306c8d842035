"use strict";
/* Finds what is wrong with a table or worth doing for it. A measure that nobody would notice is no advice. */
(() => {
  const { size, count, many } = Silt;
  const MANY = 50;
  const SOME = 8;
  const LARGE = 128e6;

  /* OPTIMIZE is worth its work if it spares many files, or some files of much data. */
  const isFragmented = ({ small }) => Boolean(small) && (small[0] - small[1] >= MANY || (small[0] - small[1] >= SOME && small[2] >= LARGE));
  /* VACUUM is worth its work if much can be deleted now, in itself and beside the table. */
  const isLittered = ({ dead, bytes }) => Boolean(dead) && (dead[2] >= 1000 || (dead[3] >= LARGE && dead[3] >= 0.2 * bytes));
  /* Order is worth its work if a look-up of a key in a large table reads a large part of it. */
  const isScattered = (table, overlap) => table.bytes >= LARGE && overlap.files >= SOME && overlap.mean > Math.max(4, overlap.files / 4);

  function findings(table) {
    if (table.problem) return ["damaged"];
    const scattered = table.overlaps.some((each) => isScattered(table, each));
    const found = { damaged: table.doubt, "small files": isFragmented(table), "unused files": isLittered(table), "overlapping files": scattered, empty: table.rows === 0 };
    return Object.keys(found).filter((name) => found[name]);
  }

  /* YAML in single quotes of the shell; a name with other characters is quoted as JSON, which YAML reads. */
  const plain = (text) => (/^[\w.]+$/.test(text) ? text : JSON.stringify(text));
  const shell = (text) => `'${text.replace(/'/g, "'\\''")}'`;
  const operation = (name, args) => `dbt run-operation ${name} --args ${shell(`{${args}}`)}`;

  /* Sentences about the files of a table, each with the command that helps, if it is worth its work. */
  function advice(table) {
    const name = plain(table.name.split(".").slice(-2).join("."));
    const scattered = table.overlaps.filter((each) => isScattered(table, each)).map((each) => each.column);
    return [ofSmall(table, name), scattered.length ? { text: `A look-up by ${scattered.join(" or ")} reads a large part of the table. In files that are ordered by it, it reads fewer:`,
      command: operation("silt_optimize", `table: ${name}, zorder_by: [${scattered.map(plain).join(", ")}]`) } : null, ofDead(table, name)].filter(Boolean);
  }

  function ofSmall(table, name) {
    if (!table.small) return { text: "No small files to pack." };
    const [files, packed, bytes] = table.small;
    const what = `${many(files, "small file")} with ${size(bytes)} could be ${count(packed)}`;
    if (!isFragmented(table)) return { text: `${what}. That is too little to be worth a command.` };
    return { text: `${what}, which makes reading faster:`, command: operation("silt_optimize", `table: ${name}`) };
  }

  function ofDead(table, name) {
    if (!table.dead) return { text: "No unused files of earlier versions." };
    const [files, bytes, due, dueBytes] = table.dead;
    const what = `${many(files, "file")} with ${size(bytes)} ${files === 1 ? "belongs" : "belong"} only to earlier versions`;
    if (!due) return { text: `${what}, which the retention still keeps.` };
    const old = `${what}; the retention has passed for ${count(due)} of them, with ${size(dueBytes)}`;
    return isLittered(table) ? { text: `${old}:`, command: operation("silt_vacuum", `table: ${name}`) } : { text: `${old}. That is too little to be worth a command.` };
  }

  Object.assign(Silt, { findings, advice });
})();
