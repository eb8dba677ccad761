"use strict";
/* The review: a virtual list of suspects, one of them open, decisions that are kept in the browser and exported. */
(() => {
  const data = JSON.parse(document.getElementById("review-data").textContent);
  const root = document.getElementById("review");
  const HEIGHT = 52, SPARE = 6, FEW = 4;
  const WORDS = { keep: "kept", relabel: "relabelled", unsure: "unsure" };
  const STORE = `psilearn-review-${data.key}`;
  const at = new Map(data.index.map((index, position) => [index, position]));
  const suspects = data.suspects.map((s, rank) => {
    const here = at.get(s.i);
    const name = data.id ? data.id[here] : `row ${data.row[here]}`;
    return { ...s, here, name, rank, row: data.row[here], given: data.label[here], found: null };
  });

  let decisions = new Map(), history = [], view = [], current = 0, stored = true, exported = true;

  /* -- small helpers */
  function make(tag, attributes = {}, ...children) {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else if (value !== null && value !== undefined && value !== false) node.setAttribute(key, value === true ? "" : value);
    }
    node.append(...children);
    return node;
  }
  const option = (value, label) => make("option", { value }, label);
  const className = (code) => data.classes[code];
  const percent = (p) => (p > 0.995 ? "> 99%" : `${Math.round(100 * p)}%`);

  /* -- state */
  function load() {
    try {
      const saved = JSON.parse(localStorage.getItem(STORE) || "{}");
      const known = new Set(suspects.map((s) => s.i));
      decisions = new Map(Object.entries(saved).map(([i, d]) => [Number(i), d]).filter(([i]) => known.has(i)));
      exported = decisions.size === 0;
    } catch (error) {
      stored = false;
    }
  }
  function save() {
    try {
      localStorage.setItem(STORE, JSON.stringify(Object.fromEntries(decisions)));
    } catch (error) {
      stored = false;
    }
  }
  function decide(suspect, decision, label) {
    if (!suspect) return;
    history.push([suspect.i, decisions.get(suspect.i)]);
    decisions.set(suspect.i, { decision, label: decision === "relabel" ? label : suspect.given });
    exported = false;
    save();
    say(`${suspect.name}: ${WORDS[decision]}${decision === "relabel" ? ` as ${className(label)}` : ""}.`);
    const place = current;
    refilter();
    if (view[place] === suspect) current = Math.min(nextOpen(place), view.length - 1);
    else current = Math.min(place, Math.max(0, view.length - 1));
    show();
  }
  function undo() {
    const last = history.pop();
    if (!last) return say("Nothing to undo.");
    const [i, before] = last;
    if (before) decisions.set(i, before);
    else decisions.delete(i);
    exported = false;
    save();
    refilter();
    let place = view.findIndex((s) => s.i === i);
    if (place < 0) { controls.state.value = "all"; controls.text.value = ""; controls.given.value = ""; refilter(); place = view.findIndex((s) => s.i === i); }
    current = place;
    say(`${view[current].name}: undone.`);
    show();
  }
  function nextOpen(place) {
    for (let k = place + 1; k < view.length; k++) if (!decisions.has(view[k].i)) return k;
    return Math.min(place + 1, view.length - 1);
  }

  /* -- filter and sort */
  function searchable(s) {
    if (s.found === null) {
      const cells = data.cells.map((column) => column[s.here]);
      s.found = [s.name, s.row, className(s.given), className(s.s), ...cells].join("\n").toLowerCase();
    }
    return s.found;
  }
  const names = new Intl.Collator(undefined, { numeric: true });
  const ORDERS = {
    probability: (a, b) => a.rank - b.rank,
    row: (a, b) => a.row - b.row,
    identifier: (a, b) => names.compare(a.name, b.name),
    given: (a, b) => a.given - b.given || a.rank - b.rank,
    suggested: (a, b) => a.s - b.s || a.rank - b.rank,
    price: (a, b) => (b.price ?? -1) - (a.price ?? -1) || a.rank - b.rank,
  };
  function refilter() {
    const state = controls.state.value, given = controls.given.value, wanted = controls.text.value.trim().toLowerCase();
    view = suspects.filter((s) => {
      const decision = decisions.get(s.i);
      if (state === "open" ? decision : state !== "all" && (!decision || decision.decision !== state)) return false;
      if (given !== "" && s.given !== Number(given)) return false;
      return !wanted || searchable(s).includes(wanted);
    });
    view.sort(ORDERS[controls.order.value]);
    current = Math.min(current, Math.max(0, view.length - 1));
  }

  /* -- the page */
  const controls = {
    state: make("select", { "aria-label": "Show", onchange: changed },
      option("all", "all suspects"), option("open", "still open"), option("relabel", "relabelled"), option("keep", "kept"), option("unsure", "unsure")),
    given: make("select", { "aria-label": "Given label", onchange: changed }, option("", "any label"), ...data.classes.map((c, k) => option(k, `labelled ${c}`))),
    order: make("select", { "aria-label": "Sort by", onchange: changed },
      option("probability", "most suspicious first"), option("row", "by row"), ...(data.id ? [option("identifier", "by identifier")] : []),
      option("given", "by given label"), option("suggested", "by suggested label"),
      ...(suspects.some((s) => s.price) ? [option("price", "by proved price")] : [])),
    text: make("input", { type: "search", placeholder: "find …", "aria-label": "Find in names and values", oninput: changed }),
  };
  const counts = make("p", { class: "counts" });
  const bar = make("progress", { max: Math.max(1, suspects.length), value: 0, "aria-label": "Decided" });
  const live = make("p", { class: "live note", role: "status", "aria-live": "polite" });
  const spacer = make("div", { class: "spacer" });
  const list = make("div", { class: "list", role: "listbox", tabindex: 0, "aria-label": "Suspects", onscroll: draw }, spacer);
  const card = make("article", { class: "card", "aria-label": "The open suspect" });
  const foot = make("div", { class: "export" });

  function changed() {
    const open = view[current];
    refilter();
    const place = view.indexOf(open);
    current = place < 0 ? 0 : place;
    show();
  }
  function say(sentence) { live.textContent = sentence; }

  function draw() {
    const first = Math.max(0, Math.floor(list.scrollTop / HEIGHT) - SPARE);
    const last = Math.min(view.length, Math.ceil((list.scrollTop + list.clientHeight) / HEIGHT) + SPARE);
    spacer.style.height = `${view.length * HEIGHT}px`;
    spacer.replaceChildren(...view.slice(first, last).map((s, k) => line(s, first + k)));
    list.setAttribute("aria-activedescendant", view.length ? `suspect-${current}` : "");
  }
  function line(s, place) {
    const decision = decisions.get(s.i);
    const became = decision && decision.decision === "relabel" ? `→ ${className(decision.label)}` : decision ? WORDS[decision.decision] : "";
    return make("div", {
      id: `suspect-${place}`, class: `line${place === current ? " open" : ""}${decision ? ` ${decision.decision}` : ""}`, role: "option",
      "aria-selected": String(place === current), "aria-posinset": place + 1, "aria-setsize": view.length,
      style: `top:${place * HEIGHT}px`, onclick: () => { current = place; show(true); },
    },
    make("span", { class: "name" }, s.name),
    make("span", { class: "labels" }, `${className(s.given)} → ${className(s.s)}?`),
    make("span", { class: "chance" }, percent(s.p)),
    make("span", { class: "became" }, became));
  }
  function reveal() {
    const top = current * HEIGHT;
    if (top < list.scrollTop) list.scrollTop = top;
    else if (top + HEIGHT > list.scrollTop + list.clientHeight) list.scrollTop = top + HEIGHT - list.clientHeight;
  }

  function show(byHand = false) {
    if (!byHand) reveal();
    draw();
    const s = view[current];
    card.replaceChildren(...(s ? details(s) : [make("p", {}, suspects.length ? "No suspect fits this filter." : "There is nothing to review.")]));
    const tally = { keep: 0, relabel: 0, unsure: 0 };
    for (const d of decisions.values()) tally[d.decision]++;
    bar.value = decisions.size;
    counts.textContent = `${decisions.size} of ${suspects.length} decided: ${tally.relabel} relabelled, ${tally.keep} kept, ${tally.unsure} unsure.`
      + (suspects.length && decisions.size === suspects.length && !exported ? " Now export them (e)." : "")
      + (stored ? "" : " This browser does not keep them: export before you close the page.");
    foot.classList.toggle("ready", decisions.size > 0 && !exported);
  }

  function details(s) {
    const decision = decisions.get(s.i);
    const choice = make("select", { "aria-label": "New label" },
      ...data.classes.map((c, k) => (k === s.given ? null : option(k, c))).filter(Boolean));
    choice.value = String(decision && decision.decision === "relabel" ? decision.label : s.s === s.given ? choice.options[0].value : s.s);
    const two = data.classes.length === 2;
    const target = () => Number(choice.value);
    const button = (key, name, act) => make("button", { type: "button", class: `act ${key}${decision && decision.decision === key ? " chosen" : ""}`,
      "aria-pressed": String(Boolean(decision && decision.decision === key)), "data-act": key, onclick: act }, name);
    return [
      make("h2", {}, s.name, ...(data.id ? [make("span", { class: "note" }, ` row ${s.row}`)] : [])),
      make("p", { class: "claim" }, "Labelled ", make("b", {}, className(s.given)),
        s.s === s.given ? "" : " – perhaps ", s.s === s.given ? "" : make("b", {}, className(s.s)), `. Wrong with probability ${percent(s.p)}.`),
      make("div", { class: "acts" },
        button("keep", `Keep ${className(s.given)} (k)`, () => decide(s, "keep")),
        button("relabel", two ? `Relabel as ${className(target())} (r)` : "Relabel as (r)", () => decide(s, "relabel", target())),
        ...(two ? [] : [choice]),
        button("unsure", "Unsure (u)", () => decide(s, "unsure"))),
      make("p", {}, s.why),
      ...(s.price ? [make("p", {}, `Proved: every linear fit that believes this label is at least ${(100 * s.price).toPrecision(2)}% worse than the best one found.`)] : []),
      values(s),
    ];
  }
  let wide = false;
  function values(s) {
    const rest = data.features.map((_, j) => j).filter((j) => !s.first.includes(j));
    const order = wide || rest.length <= FEW ? [...s.first, ...rest] : s.first;
    const near = s.near.map((i) => at.get(i));
    const head = make("tr", {}, make("th", { scope: "col" }, "feature"), make("th", { scope: "col" }, "this row"),
      ...near.map((p, k) => make("th", { scope: "col" }, `near ${k + 1}: ${className(data.label[p])}`, make("span", { class: "note" }, ` ${data.id ? data.id[p] : `row ${data.row[p]}`}`))));
    const body = order.map((j) => make("tr", {}, make("th", { scope: "row" }, data.features[j]),
      ...[s.here, ...near].map((p) => make("td", { class: "w" }, data.cells[j][p] === "" ? "missing" : data.cells[j][p]))));
    const more = rest.length > FEW ? [make("button", { type: "button", onclick: () => { wide = !wide; show(true); } }, wide ? "Only the most telling features" : `All ${data.features.length} features`)] : [];
    return make("div", {}, make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Values of this row and of its nearest believed neighbours" },
      make("table", {}, make("thead", {}, head), make("tbody", {}, ...body))), ...more);
  }

  /* -- export */
  function cell(value) {
    const plain = String(value);
    return /[",\n\r]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
  }
  function csv() {
    const head = ["row", ...(data.id ? ["id"] : []), "given", "decision", "label"];
    const lines = suspects.filter((s) => decisions.has(s.i)).sort(ORDERS.row).map((s) => {
      const d = decisions.get(s.i);
      return [s.row, ...(data.id ? [data.rawid[s.here]] : []), data.raw[s.given], d.decision, data.raw[d.label]];
    });
    return [head, ...lines].map((fields) => fields.map(cell).join(",")).join("\r\n") + "\r\n";
  }
  function download() {
    if (!decisions.size) return say("Nothing is decided yet.");
    const url = URL.createObjectURL(new Blob([csv()], { type: "text/csv;charset=utf-8" }));
    const link = make("a", { href: url, download: "decisions.csv" });
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
    exported = true;
    say(`decisions.csv holds ${decisions.size} decisions.`);
    show(true);
  }

  /* -- keys */
  const step = (by) => { if (view.length) { current = Math.max(0, Math.min(view.length - 1, current + by)); show(); } };
  const press = (act) => { const node = card.querySelector(`[data-act="${act}"]`); if (node) node.click(); };
  const KEYS = {
    ArrowDown: () => step(1), ArrowUp: () => step(-1), PageDown: () => step(10), PageUp: () => step(-10),
    Home: () => step(-view.length), End: () => step(view.length),
    k: () => press("keep"), r: () => press("relabel"), u: () => press("unsure"), z: undo, e: download,
    "/": () => controls.text.focus(),
  };
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (typing) { if (event.key === "Escape") event.target.blur(); return; }
    if (event.altKey || event.metaKey || (event.ctrlKey && event.key !== "z")) return;
    const act = KEYS[event.key];
    if (act) { event.preventDefault(); act(); }
  });
  window.addEventListener("resize", draw);

  load();
  foot.append(
    make("p", {}, make("button", { type: "button", class: "primary", onclick: download }, "Export decisions.csv (e)"), " ",
      make("button", { type: "button", onclick: undo }, "Undo (z)")),
    make("p", { class: "note" }, "The browser saves the file in its folder of downloads. Move it beside your table and run there:"), make("pre", {}, make("code", {}, root.dataset.command)));
  root.append(
    make("section", { class: "top" }, bar, counts, make("div", { class: "controls" }, ...Object.values(controls)), live),
    make("div", { class: "two" }, make("section", {}, list), make("section", {}, card)),
    make("section", {}, foot, make("p", { class: "note" }, "Keys: arrows to move, k keep, r relabel, u unsure, z undo, e export, / find. Rows are counted without the header: row 1 is line 2 of a spreadsheet. Decisions stay in this browser until you export them.")));
  refilter();
  current = Math.max(0, view.findIndex((s) => !decisions.has(s.i)));
  show();
})();
