"use strict";
/* The view of notes: what could not be read, and where the page comes from. */
(() => {
  const { h, link, grid, section, facts, time } = Silt;

  function view(model) {
    const damaged = model.tables.filter((each) => each.problem || each.doubt);
    return [h("h1", {}, "Notes"), model.notes.length ? h("ul", {}, model.notes.map((note) => h("li", {}, note))) : h("p", { class: "quiet" }, "Everything was read."),
      section("Damaged tables", grid([
        { name: "table", value: (each) => each.name, cell: (each) => link(["table", each.name], each.name) },
        { name: "problem", wide: true, value: (each) => each.problem || each.doubt }], damaged, { empty: "Every table could be read.", label: "damaged tables" })),
      section("This page", facts([["made", time(model.made)], ["by", `dbt-silt ${model.by}`], ["databases", model.databases.join(", ")],
        ["dbt parsed the project", model.manifestMade ? time(model.manifestMade) : null],
        ["states of nodes", model.last ? ["after ", Silt.runLink(model.last.run), `, command ${model.last.id}`] : null]])),
      section("Words", facts([...WORDS.map((state) => [Silt.badge(state), Silt.meaning(state)])]))];
  }

  const WORDS = ["built", "built earlier", "reused", "done earlier", "skipped", "failed", "warned", "held", "interrupted", "broken off", "committed", "stale", "affected", "ephemeral"];

  Object.assign(Silt, { notesView: view });
})();
