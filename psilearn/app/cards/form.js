(() => {
  "use strict";
  // The figures are computed as the classifier computes them, in the same order, so that ties fall alike.
  const box = document.currentScript.previousElementSibling;
  const model = JSON.parse(box.querySelector("script").textContent);
  const several = model.classes.length > 2;

  function element(name, words, parent) {
    const node = document.createElement(name);
    if (words) node.textContent = words;
    if (parent) parent.append(node);
    return node;
  }

  const inputs = model.fields.map((field) => {
    const label = element("label", "", box);
    element("span", field.name, label);
    const input = element(field.kind === "number" ? "input" : "select", "", label);
    if (field.kind === "number") {
      input.type = "number";
      input.step = "any";
      input.placeholder = "missing";
      input.value = field.value === null ? "" : field.value;
    } else {
      field.options.forEach((option, k) => input.add(new Option(option, k)));
      input.value = field.value;
    }
    input.addEventListener("input", show);
    return input;
  });
  const out = element("output", "", box);
  out.setAttribute("aria-live", "polite");
  const advice = element("p", "", box);
  const applying = element("ul", "", box);
  const others = element("details", "", box);
  const summary = element("summary", "", others);
  const silent = element("ul", "", others);

  // a value is a number, the place of a choice, or null if it is missing
  function present() {
    return inputs.map((input, k) => {
      if (input.value === "") return null;
      const value = Number(input.value);
      return model.fields[k].missing === value ? null : value;
    });
  }

  function holds(part, values) {
    const value = values[part.field];
    const yes = part.kind === "missing" ? value === null :
      part.kind === "above" ? (value === null ? part.fill : value) > part.value :
      value !== null && value === (part.kind === "flag" ? 1 : part.value);
    return yes === part.answer;
  }

  function classOf(values) {
    const score = model.classes.map(() => 0), record = model.classes.map(() => 0);
    for (const rule of model.rules) {
      if (!rule.parts.every((part) => holds(part, values))) continue;
      const place = several ? rule.to : 0, vote = rule.weight * rule.sign;
      score[place] += vote;
      record[place] += vote * rule.reliability;
    }
    if (!several) {
      const tied = model.share[1] >= model.share[0] ? 1 : 0;
      return Math.abs(score[0]) < model.tie ? tied : Number(score[0] > 0);
    }
    const total = score.map((s, k) => s + 1e3 * model.tie * record[k] + model.tie * model.share[k]);
    return total.indexOf(Math.max(...total));
  }

  // other values of a field that some rule tells apart from the present one: what to say, the value, how far it is
  function alternatives(k, now) {
    const field = model.fields[k], mine = model.rules.flatMap((r) => r.parts).filter((p) => p.field === k);
    if (field.kind !== "number") {
      return field.options.map((words, at) => ({ k, words: field.name + " = " + words, value: at, far: 1 }))
        .filter((cell) => cell.value !== field.missing && cell.value !== now);
    }
    const above = mine.filter((p) => p.kind === "above");
    if (!above.length) return [];
    const cuts = [...new Map(above.map((p) => [p.value, p])).values()].sort((a, b) => a.value - b.value);
    const x = now === null ? above[0].fill : now;
    const width = cuts[cuts.length - 1].value - cuts[0].value || Math.max(Math.abs(cuts[0].value), 1);
    const cells = cuts.map((cut) => ({ k, words: cut.words[0], upto: false, value: cut.value }))
      .map((cell, at) => {
        const next = at + 1 < cuts.length ? cuts[at + 1].value : cell.value + 0.1 * width;
        return { ...cell, low: cell.value, value: cell.value + (next - cell.value) / 2 };
      }).filter((cell) => cell.low >= x);
    const below = cuts.filter((cut) => cut.value < x).map((cut) => ({ k, words: cut.words[1], value: cut.value }));
    return [...cells, ...below].map((cell) => ({ ...cell, far: Math.abs(cell.value - x) / width }));
  }

  // the fewest fields, then the least distance
  function nearest(values, given) {
    const cells = model.fields.map((_, k) => alternatives(k, values[k]));
    let trials = 0, best = null;
    function extend(from, left, changed, picked, far) {
      if (left === 0) {
        if (trials++ < model.mostTrials && (!best || far < best.far) && classOf(changed) !== given)
          best = { far, picked: [...picked], given: classOf(changed) };
        return;
      }
      for (let k = from; k < cells.length && trials < model.mostTrials; k++)
        for (const cell of cells[k]) {
          const then = [...changed];
          then[k] = cell.value;
          extend(k + 1, left - 1, then, [...picked, cell], far + cell.far);
        }
    }
    for (let count = 1; count <= model.mostFeatures && !best; count++) extend(0, count, values, [], 0);
    return best;
  }

  function take(picked) {
    for (const cell of picked) inputs[cell.k].value = cell.value;
    show();
  }

  function show() {
    const values = present(), given = classOf(values), sums = model.classes.map(() => 0);
    applying.replaceChildren();
    silent.replaceChildren();
    for (const rule of model.rules) {
      const on = rule.parts.every((part) => holds(part, values)), points = model.unit * rule.weight;
      const whom = (several && rule.sign < 0 ? "not " : "") + model.classes[rule.to];
      if (on) sums[rule.to] += several ? rule.sign * points : points;
      element("li", Number(points.toPrecision(4)) + " for " + whom + " if " + rule.text, on ? applying : silent);
    }
    summary.textContent = "Rules that do not apply: " + silent.children.length;
    const totals = sums.map((s, k) => model.classes[k] + " " + Number(s.toPrecision(4)));
    out.textContent = model.classes[given] + " (" + totals.join(", ") + ")";
    const change = nearest(values, given);
    advice.textContent = change ?
      "It would be " + model.classes[change.given] + " with " + change.picked.map((c) => c.words).join(" and ") + ". " :
      "No other values of " + model.mostFeatures + " features or fewer were found that change this. ";
    if (change) element("button", "Try it", advice).addEventListener("click", () => take(change.picked));
  }
  show();
})();
