"use strict";
/* Two-dimensional classifiers small enough to be solved while a point is being dragged. */
const Solvers = (() => {
  /* max sum a - |sum a_i y_i x_i|^2 / 2 over lo <= a <= hi, sum a_i y_i = 0, by pairs of greatest violation. */
  function dual(points, lo, hi, a) {
    const n = points.length;
    let w0 = 0, w1 = 0;
    for (let i = 0; i < n; i++) {
      w0 += a[i] * points[i][2] * points[i][0];
      w1 += a[i] * points[i][2] * points[i][1];
    }
    const eps = 1e-12;
    let top = 0, low = 0;
    for (let round = 0; round < 20000; round++) {
      let up = -1, down = -1;
      top = -Infinity; low = Infinity;
      for (let i = 0; i < n; i++) {
        const [x, z, y] = points[i];
        const v = y - w0 * x - w1 * z;
        const more = y > 0 ? a[i] < hi[i] - eps : a[i] > lo[i] + eps;
        const less = y > 0 ? a[i] > lo[i] + eps : a[i] < hi[i] - eps;
        if (more && v > top) { top = v; up = i; }
        if (less && v < low) { low = v; down = i; }
      }
      if (up < 0 || down < 0 || top - low < 1e-7) break;
      const dx = points[up][0] - points[down][0], dz = points[up][1] - points[down][1];
      const yu = points[up][2], yd = points[down][2];
      let step = (top - low) / Math.max(dx * dx + dz * dz, 1e-12);
      step = Math.min(step, yu > 0 ? hi[up] - a[up] : a[up] - lo[up], yd > 0 ? a[down] - lo[down] : hi[down] - a[down]);
      a[up] += yu * step;
      a[down] -= yd * step;
      w0 += step * dx;
      w1 += step * dz;
    }
    const b = Number.isFinite(top) && Number.isFinite(low) ? (top + low) / 2 : Number.isFinite(top) ? top : low;
    return { w: [w0, w1], b };
  }

  const margin = (f, p) => p[2] * (f.w[0] * p[0] + f.w[1] * p[1] + f.b);
  const size = (f) => (f.w[0] ** 2 + f.w[1] ** 2) / 2;
  const hinge = (u) => Math.max(0, 1 - u);
  const psi = (u) => Math.min(2, 2 * Math.max(0, 1 - u));
  const value = (f, points, C, loss) => points.reduce((s, p) => s + C * loss(margin(f, p)), size(f));

  function svm(points, C) {
    const n = points.length;
    const f = dual(points, new Float64Array(n), new Float64Array(n).fill(C), new Float64Array(n));
    return { ...f, objective: value(f, points, C, hinge) };
  }

  /* d.c. algorithm: a point refused by the last fit (u < 0) pays a constant and may only pull, box [-2C, 0]. */
  function descend(points, C, start) {
    const n = points.length;
    let best = start, refused = points.map((p) => margin(start, p) < 0);
    for (let round = 0; round < 30; round++) {
      const lo = Float64Array.from(refused, (r) => (r ? -2 * C : 0));
      const hi = Float64Array.from(refused, (r) => (r ? 0 : 2 * C));
      const next = dual(points, lo, hi, new Float64Array(n));
      next.objective = value(next, points, C, psi);
      if (best.objective !== undefined && next.objective > best.objective - 1e-9) break;
      best = next;
      refused = points.map((p) => margin(next, p) < 0);
    }
    return best;
  }

  function psiFit(points, C, starts = 24) {
    let best = descend(points, C, svmStart(points, C));
    for (let k = 0; k < starts; k++) {
      const t = (2 * Math.PI * k) / starts;
      const f = descend(points, C, cut(points, [Math.cos(t), Math.sin(t)]));
      if (f.objective < best.objective - 1e-9) best = f;
    }
    return best;
  }

  const svmStart = (points, C) => { const f = svm(points, C); return { w: f.w, b: f.b }; };

  /* The threshold along a direction that misclassifies fewest points. */
  function cut(points, w) {
    const along = points.map((p) => [w[0] * p[0] + w[1] * p[1], p[2]]).sort((p, q) => p[0] - q[0]);
    let wrong = along.filter((p) => p[1] < 0).length, fewest = wrong, b = -along[0][0] + 1;
    for (let i = 0; i < along.length; i++) {
      wrong += along[i][1] > 0 ? 1 : -1;
      const here = i + 1 < along.length ? (along[i][0] + along[i + 1][0]) / 2 : along[i][0] + 1;
      if (wrong < fewest) { fewest = wrong; b = -here; }
    }
    return { w, b };
  }

  return { svm, psi: psiFit, margin };
})();

/* The picture. Texts from the data go in by textContent only. */
function mountExplorer(root, data) {
  const NS = "http://www.w3.org/2000/svg";
  const W = Math.round(Math.min(760, Math.max(300, root.clientWidth || 640))), H = Math.round(Math.max(300, 0.66 * W));
  const first = data.points.map((p) => p.slice());
  let points = first.map((p) => p.slice()), C = data.C, chosen = points.length - 1, start = null;

  const make = (tag, attributes = {}, text = null, parent = null) => {
    const svg = ["svg", "g", "circle", "rect", "line", "path", "text", "title", "clipPath"].includes(tag);
    const node = svg ? document.createElementNS(NS, tag) : document.createElement(tag);
    for (const [key, v] of Object.entries(attributes)) node.setAttribute(key, v);
    if (text !== null) node.textContent = text;
    if (parent) parent.append(node);
    return node;
  };

  const spread = (at) => {
    const v = first.map((p) => p[at]), low = Math.min(...v), high = Math.max(...v), pad = 0.35 * (high - low || 1);
    return [low - pad, high + pad];
  };
  const [x0, x1] = spread(0), [y0, y1] = spread(1);
  const px = (x) => ((x - x0) / (x1 - x0)) * W, py = (y) => H - ((y - y0) / (y1 - y0)) * H;
  const ux = (p) => x0 + (p / W) * (x1 - x0), uy = (p) => y0 + ((H - p) / H) * (y1 - y0);

  const svg = make("svg", { viewBox: `0 0 ${W} ${H}`, class: "plane", role: "application",
    "aria-label": "Scatter plot. Arrow keys move the chosen point, Page Up and Page Down choose another, Enter changes its class." }, null, root);
  const lines = make("g", {}, null, svg), dots = make("g", {}, null, svg);
  make("text", { x: W / 2, y: H - 8, class: "axis" }, data.axes[0], svg);
  make("text", { x: 14, y: H / 2, class: "axis", transform: `rotate(-90 14 ${H / 2})` }, data.axes[1], svg);

  const legend = make("p", { class: "legend" }, null, root);
  for (const [cls, text] of [["key-svm", "SVM"], ["key-psi", "ψ-learning"], ["key-a", data.classes[0]], ["key-b", data.classes[1]], ["key-refused", "refused by ψ"]]) {
    make("span", { class: `key ${cls}` }, text, legend);
  }
  const controls = make("div", { class: "controls" }, null, root);
  const label = make("label", {}, "C, the price of a mistake: ", controls);
  const slider = make("input", { type: "range", min: -2, max: 2, step: 0.1, value: Math.log10(C), "aria-label": "C, logarithmic" }, null, label);
  const shownC = make("output", {}, "", label);
  const flip = make("button", { type: "button" }, "Change the class of the chosen point", controls);
  const reset = make("button", { type: "button" }, "Start again", controls);
  const says = make("p", { class: "says", "aria-live": "polite" }, "", root);

  function boundary(f, cls) {
    for (const [level, kind] of [[0, "middle"], [1, "edge"], [-1, "edge"]]) {
      const ends = crossing(f, level);
      if (ends) make("line", { x1: px(ends[0][0]), y1: py(ends[0][1]), x2: px(ends[1][0]), y2: py(ends[1][1]), class: `${cls} ${kind}` }, null, lines);
    }
  }

  function crossing(f, level) {
    const [a, b] = f.w, c = f.b - level, hits = [];
    if (Math.hypot(a, b) < 1e-9) return null;
    for (const x of [x0, x1]) { const y = -(c + a * x) / b; if (y >= y0 && y <= y1) hits.push([x, y]); }
    for (const y of [y0, y1]) { const x = -(c + b * y) / a; if (x > x0 && x < x1) hits.push([x, y]); }
    return hits.length >= 2 ? hits.slice(0, 2) : null;
  }

  const angle = (f, g) => {
    const size = Math.hypot(...f.w) * Math.hypot(...g.w);
    if (size < 1e-12) return 0;
    return (Math.acos(Math.max(-1, Math.min(1, (f.w[0] * g.w[0] + f.w[1] * g.w[1]) / size))) * 180) / Math.PI;
  };

  function drawPoint(p, at, refused) {
    const name = p[2] < 0 ? data.classes[0] : data.classes[1];
    const g = make("g", { class: `point ${p[2] < 0 ? "a" : "b"}${refused ? " refused" : ""}${at === chosen ? " chosen" : ""}`,
      transform: `translate(${px(p[0])} ${py(p[1])})`, tabindex: at === chosen ? 0 : -1, role: "img", "data-at": at,
      "aria-label": `Point ${at + 1} of ${points.length}, class ${name}${refused ? ", refused" : ""}` }, null, dots);
    make("circle", { r: 16, class: "grip" }, null, g);
    if (refused) make("circle", { r: 10, class: "ring" }, null, g);
    if (p[2] < 0) make("circle", { r: 5.5, class: "mark" }, null, g);
    else make("rect", { x: -5, y: -5, width: 10, height: 10, class: "mark" }, null, g);
  }

  function draw(focus = false) {
    const fits = { svm: Solvers.svm(points, C), psi: Solvers.psi(points, C) };
    start = start || fits;
    lines.replaceChildren();
    boundary(fits.svm, "svm");
    boundary(fits.psi, "psi");
    const refused = points.map((p) => Solvers.margin(fits.psi, p) < 0);
    dots.replaceChildren();
    points.forEach((p, at) => drawPoint(p, at, refused[at]));
    if (focus) dots.children[chosen].focus({ preventScroll: true });
    shownC.textContent = C.toPrecision(2);
    says.textContent = `Since the start the SVM boundary has turned by ${angle(start.svm, fits.svm).toFixed(1)}°, ` +
      `the ψ boundary by ${angle(start.psi, fits.psi).toFixed(1)}°. ψ refuses ${refused.filter(Boolean).length} of ${points.length} points.`;
    root.dispatchEvent(new CustomEvent("fitted", { detail: fits }));
  }

  let dragging = false;
  const inPlane = (event) => {
    const box = svg.getBoundingClientRect();
    return [((event.clientX - box.left) / box.width) * W, ((event.clientY - box.top) / box.height) * H, W / box.width];
  };
  /* The nearest point within a finger's reach, so that crowded points can be told apart. */
  const nearest = (event) => {
    const [x, y, scale] = inPlane(event);
    const far = points.map((p) => Math.hypot(px(p[0]) - x, py(p[1]) - y));
    const at = far.indexOf(Math.min(...far));
    return far[at] <= 22 * scale ? at : -1;
  };
  const place = (event) => {
    const [x, y] = inPlane(event);
    points[chosen][0] = ux(Math.max(6, Math.min(W - 6, x)));
    points[chosen][1] = uy(Math.max(6, Math.min(H - 6, y)));
  };
  svg.addEventListener("pointerdown", (event) => {
    const at = nearest(event);
    if (at < 0) return;
    chosen = at;
    dragging = true;
    svg.setPointerCapture(event.pointerId);
    event.preventDefault();
    draw(true);
  });
  svg.addEventListener("pointermove", (event) => { if (dragging) { place(event); draw(); } });
  for (const kind of ["pointerup", "pointercancel"]) svg.addEventListener(kind, () => { dragging = false; });
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [-8, 0], ArrowRight: [8, 0], ArrowUp: [0, -8], ArrowDown: [0, 8] }[event.key];
    if (step) {
      points[chosen] = [ux(px(points[chosen][0]) + step[0]), uy(py(points[chosen][1]) + step[1]), points[chosen][2]];
    } else if (event.key === "PageDown") chosen = (chosen + 1) % points.length;
    else if (event.key === "PageUp") chosen = (chosen + points.length - 1) % points.length;
    else if (event.key === "Enter" || event.key === " ") points[chosen][2] *= -1;
    else return;
    event.preventDefault();
    draw(true);
  });
  flip.addEventListener("click", () => { points[chosen][2] *= -1; draw(); });
  reset.addEventListener("click", () => {
    points = first.map((p) => p.slice()); C = data.C; slider.value = Math.log10(C); chosen = points.length - 1; start = null; draw();
  });
  slider.addEventListener("input", () => { C = 10 ** Number(slider.value); draw(); });
  draw();
}

for (const root of document.querySelectorAll(".explorer")) {
  mountExplorer(root, JSON.parse(document.getElementById(root.dataset.from).textContent));
}
