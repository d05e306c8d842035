"use strict";
/* Shows the view that the address names, and on a served page asks for newer data. */
(() => {
  const VIEWS = {
    "": (model, name, query) => Silt.runsView(model, query),
    run: Silt.runView,
    graph: (model, name, query) => Silt.graphView(model, query),
    tables: (model, name, query) => Silt.tablesView(model, query),
    table: Silt.tableView,
    notes: (model) => Silt.notesView(model),
  };
  const place = document.getElementById("view");
  let model = Silt.read(JSON.parse(document.getElementById("data").textContent));

  function address() {
    const [path, search] = window.location.hash.replace(/^#\/?/, "").split("?");
    const [view, name] = path.split("/").map(decoded);
    return { view: view || "", name: name || "", query: new URLSearchParams(search || "") };
  }

  function decoded(part) {
    try { return decodeURIComponent(part); } catch (error) { return part; }
  }

  /* Keeps filters in the address without a new entry in the history. */
  Silt.keep = (query) => {
    const path = window.location.hash.split("?")[0] || "#/";
    const search = query.toString();
    window.history.replaceState(null, "", search ? `${path}?${search}` : path);
  };

  function show(isNew) {
    const { view, name, query } = address();
    const draw = Object.hasOwn(VIEWS, view) ? VIEWS[view] : VIEWS[""];
    const y = window.scrollY;
    place.replaceChildren(...draw(model, name, query).flat(Infinity).filter(Boolean));
    const home = { run: "", table: "tables" }[view] ?? view;
    document.querySelectorAll("nav a").forEach((each) => {
      if (each.getAttribute("href") === `#/${home}`) each.setAttribute("aria-current", "page"); else each.removeAttribute("aria-current");
    });
    document.title = titleOf(place.querySelector("h1"));
    document.getElementById("made").replaceChildren(`made ${Silt.time(model.made)} `, "(", Silt.age(model.made), ")");
    showZone();
    if (isNew) { window.scrollTo(0, 0); place.focus({ preventScroll: true }); } else window.scrollTo(0, y);
  }

  /* Names the project and the target first, because a tab shows little more. */
  function titleOf(heading) {
    const warehouse = [model.project, model.target].filter(Boolean).join(" ");
    return [warehouse || "silt", heading ? heading.firstChild.textContent.trim() : ""].filter(Boolean).join(": ");
  }

  const ZONE = "silt-zone";
  const button = document.getElementById("zone");

  function showZone() {
    button.textContent = Silt.zone.isUtc ? "UTC" : Intl.DateTimeFormat().resolvedOptions().timeZone || "local time";
    button.title = Silt.zone.isUtc ? "Times are in UTC. Show local time" : "Times are local. Show UTC";
  }

  /* A browser may refuse to keep the choice for a file: then it holds until the page is left. */
  function stored(value) {
    try {
      if (value !== undefined) window.localStorage.setItem(ZONE, value);
      return window.localStorage.getItem(ZONE);
    } catch (error) { return null; }
  }

  button.addEventListener("click", () => { Silt.zone.isUtc = !Silt.zone.isUtc; stored(Silt.zone.isUtc ? "utc" : "local"); show(false); });
  Silt.zone.isUtc = stored() === "utc";

  /* Ages grow while a page is open. */
  setInterval(() => document.querySelectorAll("time.age").forEach((each) => { each.textContent = Silt.ago(Number(each.dataset.ms)); }), 30000);

  /* Charts are as wide as the window. */
  let resizing = null;
  window.addEventListener("resize", () => { clearTimeout(resizing); resizing = setTimeout(() => { if (!isEditing()) show(false); }, 150); });

  /* A served page: asks again and again; 304 says that nothing has changed. */
  async function follow(url, seconds) {
    let tag = null;
    for (;;) {
      await new Promise((done) => { setTimeout(done, seconds * 1000); });
      try {
        const answer = await fetch(url, { headers: tag ? { "If-None-Match": tag } : {}, cache: "no-store" });
        document.body.classList.toggle("lost", !answer.ok && answer.status !== 304);
        if (answer.status === 200) {
          tag = answer.headers.get("ETag");
          model = Silt.read(await answer.json());
          if (!isEditing()) show(false);
        }
      } catch (error) {
        document.body.classList.add("lost");
      }
    }
  }

  /* What a person is typing in is not drawn again under their hands. */
  function isEditing() {
    const active = document.activeElement;
    return Boolean(active && ["INPUT", "SELECT"].includes(active.tagName));
  }

  window.addEventListener("hashchange", () => show(true));
  show(false);
  const live = document.getElementById("live");
  if (live) {
    const { url, seconds } = JSON.parse(live.textContent);
    follow(url, seconds);
  }
})();
