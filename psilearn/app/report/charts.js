"use strict";
/* Small charts from the data in the page. Texts from the data go in by textContent only. */
const Charts = (() => {
  const NS = "http://www.w3.org/2000/svg", H = 330, L = 76, R = 16, T = 14, B = 46;

  function node(tag, attributes, parent, text) {
    const made = document.createElementNS(NS, tag);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    if (parent) parent.append(made);
    return made;
  }

  const short = (v) => (v === 0 ? "0" : Math.abs(v) >= 1e4 || Math.abs(v) < 1e-3 ? v.toExponential(0) : String(Number(v.toPrecision(3))));

  /* Enough digits to tell neighbouring ticks apart. */
  const fine = (v, range) => (range < Math.abs(v) / 50 ? v.toFixed(Math.min(8, Math.max(0, 2 - Math.floor(Math.log10(range))))) : short(v));

  function ticks(low, high, log) {
    if (log) {
      const out = [];
      for (let e = Math.ceil(Math.log10(low) - 1e-9); e <= Math.log10(high) + 1e-9; e++) out.push(10 ** e);
      return out;
    }
    const raw = (high - low) / 5, power = 10 ** Math.floor(Math.log10(raw)), step = [1, 2, 5, 10].find((m) => m * power >= raw) * power;
    const out = [];
    for (let v = Math.ceil(low / step) * step; v <= high + 1e-12; v += step) out.push(Math.abs(v) < step / 1e6 ? 0 : v);
    return out;
  }

  /* options: series [{x, y, cls}], xLabel, yLabel, logX, xLow, yLow, yHigh, label; returns {svg, x, y} with the scales. */
  function lines(host, options) {
    const W = Math.round(Math.min(760, Math.max(300, host.clientWidth || 640)));
    const xs = options.series.flatMap((s) => s.x), ys = options.series.flatMap((s) => s.y).filter((v) => v !== null);
    let x0 = options.xLow ?? Math.min(...xs), x1 = Math.max(...xs), y0 = options.yLow ?? Math.min(...ys), y1 = options.yHigh ?? Math.max(...ys);
    if (x1 <= x0) x1 = x0 + 1;
    if (y1 <= y0) y1 = y0 + Math.max(1e-3, Math.abs(y0) / 10);
    const scale = options.logX ? Math.log10 : (v) => v;
    const x = (v) => L + ((scale(v) - scale(x0)) / (scale(x1) - scale(x0))) * (W - L - R);
    const y = (v) => H - B - ((v - y0) / (y1 - y0)) * (H - T - B);
    const svg = node("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": options.label }, null);
    for (const v of ticks(y0, y1, false)) {
      node("line", { x1: L, x2: W - R, y1: y(v), y2: y(v), class: "grid" }, svg);
      node("text", { x: L - 8, y: y(v) + 4, "text-anchor": "end" }, svg, fine(v, y1 - y0));
    }
    for (const v of ticks(x0, x1, options.logX)) node("text", { x: x(v), y: H - B + 18, "text-anchor": "middle" }, svg, options.logX ? short(v) : fine(v, x1 - x0));
    node("rect", { x: L, y: T, width: W - L - R, height: H - T - B, class: "frame" }, svg);
    for (const s of options.series) {
      let path = "";
      s.x.forEach((v, i) => { if (s.y[i] !== null) path += `${path && s.y[i - 1] !== null ? "L" : "M"}${x(v).toFixed(1)} ${y(s.y[i]).toFixed(1)}`; });
      node("path", { d: path, class: `series ${s.cls}` }, svg);
    }
    node("text", { x: (L + W - R) / 2, y: H - 6, class: "axis" }, svg, options.xLabel);
    node("text", { x: 14, y: H / 2, class: "axis", transform: `rotate(-90 14 ${(H - B) / 2 + T})` }, svg, options.yLabel);
    host.replaceChildren(svg);
    return { svg, x, y, top: T, bottom: H - B };
  }

  return { lines, node, short };
})();

function readData(name) {
  const from = document.getElementById(name);
  return from ? JSON.parse(from.textContent) : null;
}

function legend(host, names) {
  host.replaceChildren(...names.map(([text, cls]) => {
    const item = document.createElement("span");
    const svg = Charts.node("svg", { viewBox: "0 0 24 8", width: 24, height: 8, "aria-hidden": "true", style: "display:inline-block;width:24px;margin-right:.4em" }, null);
    Charts.node("line", { x1: 0, x2: 24, y1: 4, y2: 4, class: cls, "stroke-width": 3 }, svg);
    item.append(svg, document.createTextNode(text));
    return item;
  }));
}

/* Coefficients along C. */
(() => {
  const all = readData("paths-data"), root = document.getElementById("paths");
  if (!root || !all || !all.length) return;
  const pick = root.querySelector("select"), slider = root.querySelector("input"), shown = root.querySelector("output");
  const chart = root.querySelector(".chart"), says = root.querySelector(".says"), key = root.querySelector(".legend");
  all.forEach((p, i) => { const o = document.createElement("option"); o.value = i; o.textContent = p.title; pick.append(o); });
  function draw() {
    const path = all[Number(pick.value)], at = Number(slider.value), C = path.Cs[at];
    const frame = Charts.lines(chart, { series: path.lines.map((l, i) => ({ x: path.Cs, y: l.values, cls: `s${i}` })), logX: true,
      xLabel: "C", yLabel: path.signed ? "coefficient" : "largest coefficient", label: `Coefficients of ${path.title} along C` });
    Charts.node("line", { x1: frame.x(C), x2: frame.x(C), y1: frame.top, y2: frame.bottom, class: "cursor" }, frame.svg);
    legend(key, path.lines.map((l, i) => [`${l.name}: ${Charts.short(l.values[at])}`, `s${i}`]));
    shown.textContent = Charts.short(C);
    slider.setAttribute("aria-valuetext", `C = ${Charts.short(C)}`);
    says.textContent = `At C = ${Charts.short(C)} the model uses ${path.nonzero[at]} features` +
      (path.nonzero[at] > path.lines.length ? "; drawn are the largest of the model in the table." : ".") +
      (C === path.chosen ? " This is the model in the table." : ` Tuning chose C = ${Charts.short(path.chosen)}.`);
  }
  function choose() {
    const path = all[Number(pick.value)];
    slider.max = path.Cs.length - 1;
    slider.value = path.Cs.indexOf(path.chosen);
    draw();
  }
  pick.addEventListener("change", choose);
  slider.addEventListener("input", draw);
  choose();
})();

/* Risk against coverage. */
(() => {
  const all = readData("risk-data"), root = document.getElementById("risk");
  if (!root || !all || !all.length) return;
  const slider = root.querySelector("input"), shown = root.querySelector("output"), chart = root.querySelector(".chart"), says = root.querySelector(".says");
  slider.max = all.length - 1;
  slider.value = Math.max(0, all.findIndex((r) => r.own));
  const high = Math.max(0.01, ...all.flatMap((r) => r.risk.slice(Math.floor(r.risk.length / 4)))) * 1.15;
  function draw() {
    const here = all[Number(slider.value)];
    const frame = Charts.lines(chart, { series: [{ x: [0, ...here.coverage], y: [null, ...here.risk.map((v) => Math.min(v, high))], cls: "s0" }], yLow: 0, yHigh: high,
      xLabel: "share of the test rows answered", yLabel: "error among the answered", label: `Error against coverage at d = ${here.d}` });
    Charts.node("circle", { cx: frame.x(here.answered), cy: frame.y(Math.min(here.error, high)), r: 6, class: "s1", fill: "var(--svm)" }, frame.svg);
    shown.textContent = String(here.d);
    slider.setAttribute("aria-valuetext", `d = ${here.d}`);
    says.textContent = `If "I don't know" costs ${here.d} of a mistake, ${here.name}${here.own ? " (the model in the table)" : ""} answers ${(100 * here.answered).toFixed(1)}% of the test rows, ` +
      `${(100 * here.error).toFixed(1)}% of the answers are wrong, and a row costs ${here.cost.toFixed(3)} on average.`;
  }
  slider.addEventListener("input", draw);
  draw();
})();

/* Risk against coverage of every method. */
(() => {
  const all = readData("answers-data"), root = document.getElementById("answers");
  if (!root || !all || !all.length) return;
  const style = (i) => `s${i % 10}${i < 10 ? "" : " dashed"}`;
  const high = Math.max(0.01, ...all.flatMap((m) => [m.error, ...m.risk.slice(Math.floor(m.risk.length / 4))])) * 1.15;
  const frame = Charts.lines(root.querySelector(".chart"), { yLow: 0, yHigh: high, xLabel: "share of the test rows answered", yLabel: "error among the answered",
    label: "Error against coverage of every method",
    series: all.map((m, i) => ({ x: [0, ...m.coverage], y: [null, ...m.risk.map((v) => Math.min(v, high))], cls: style(i) })) });
  all.forEach((m, i) => Charts.node("circle", { cx: frame.x(m.answered), cy: frame.y(m.error), r: 5, class: style(i), fill: "var(--card)", "stroke-width": 3 }, frame.svg));
  legend(root.querySelector(".legend"), all.map((m, i) => [m.name, style(i)]));
})();

/* Bounds closing over time. */
(() => {
  const all = readData("bounds-data"), root = document.getElementById("bounds");
  if (!root || !all) return;
  for (const fit of all) {
    const figure = document.createElement("figure"), caption = document.createElement("figcaption"), host = document.createElement("div");
    caption.textContent = `${fit.title}: the best solution so far (solid) and the proved bound (dashed)`;
    figure.append(caption, host);
    root.append(figure);
    Charts.lines(host, { series: [{ x: fit.seconds, y: fit.objective, cls: "s1" }, { x: fit.seconds, y: fit.bound, cls: "s0 dashed" }],
      xLow: 0, xLabel: "seconds", yLabel: "objective", label: caption.textContent });
  }
})();
