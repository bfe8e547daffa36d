// The loss explorer: reads the controls, draws four plots, and shows numbers and properties.
(function () {
  "use strict";
  const lc = window.linearcore;
  const { plot, roof, coarse, text } = window.linearcorePlot;
  const form = document.getElementById("explorer-form");
  const at = (id) => document.getElementById(id);
  const LEADS = [-6, 6];
  const STEPS = 240;

  const signed = (x, digits) => x.toFixed(digits).replace("-", "−");
  const read = (x) => (Number.isFinite(x) ? Number(x.toPrecision(7)).toString().replace(/-/g, "−") : "∞");

  function state() {
    const data = new FormData(form);
    const number = (name) => Number(data.get(name));
    return {
      base: data.get("base"),
      form: data.get("form"),
      sides: number("sides"),
      classes: number("classes"),
      tau: number("tau"),
      sharpness: number("sharpness"),
      lead: number("lead"),
      t: number("t"),
    };
  }

  function move(name) {
    return (x) => {
      const slider = form.elements[name];
      slider.value = String(x);
      update();
    };
  }

  const plots = {};
  for (const name of ["value", "gradient", "curvature"]) {
    plots[name] = plot(at(`plot-${name}`), { x: LEADS, xLabel: "lead of the true class", move: move("lead") });
  }
  plots.transform = plot(at("plot-transform"), { x: [0, 1], xLabel: "t", move: move("t") });

  // Evenly spaced, with two extra points around every knot, so that jumps of the curvature are vertical.
  function leadGrid(knots) {
    const grid = [];
    for (let k = 0; k <= STEPS; k += 1) grid.push(LEADS[0] + (k / STEPS) * (LEADS[1] - LEADS[0]));
    for (const knot of knots) if (knot > LEADS[0] && knot < LEADS[1]) grid.push(knot - 1e-9, knot, knot + 1e-9);
    return grid.sort((a, b) => a - b);
  }

  // A round number above the curve, at most the cap.
  const above = (numbers, cap) => roof(Math.min(Math.max(...numbers, 1e-6) * 1.02, cap));

  function limits(name, numbers) {
    if (name === "value") return [0, above(numbers, 10)];
    if (name === "curvature") return [0, above(numbers, 5)];
    const highest = Math.max(...numbers);
    return [-above(numbers.map((y) => -y), 5), highest > 1e-12 ? above(numbers, 5) : 0];
  }

  function drawLoss(name, p, declared) {
    const knots = declared.knots.map((u) => lc.leadOf(u, p));
    const points = leadGrid(knots).map((lead) => [lead, lc.loss[name](lead, p)]);
    const [low, high] = limits(name, points.map(([, y]) => y));
    const now = lc.loss[name](p.lead, p);
    const band = declared.core.map((u) => (Number.isFinite(u) ? lc.leadOf(u, p) : LEADS[0]));
    const reference = name === "value" ? [[LEADS[0], 1], [0, 1], [0, 0], [LEADS[1], 0]] : null;
    plots[name]({ y: [low, high], points, reference, band, knots, mark: [p.lead, now] });
    describe(name, now, `at lead ${text(p.lead)}; from ${read(points[0][1])} at −6 to ${read(points.at(-1)[1])} at 6`);
  }

  function drawTransform(p) {
    const points = [];
    for (let k = 0; k <= 100; k += 1) points.push([k / 100, lc.transform(k / 100, p)]);
    const now = lc.transform(p.t, p);
    const reference = [[0, 0], [1, p.tau]];
    // A coarse scale: τ scales T, so with a scale that always fits, the curve would hardly change.
    plots.transform({ y: [0, coarse(points[100][1] * 1.02)], points, reference, mark: [p.t, now] });
    describe("transform", now, `at t = ${text(p.t)}, where the bound τ·t is ${read(p.tau * p.t)}`);
  }

  function describe(name, now, where) {
    at(`read-${name}`).value = read(now);
    const svg = at(`plot-${name}`);
    const title = svg.parentElement.querySelector("figcaption").firstChild.textContent.trim();
    svg.setAttribute("aria-label", `${title}: ${read(now)} ${where}`);
  }

  const yes = (fact) => (fact ? "yes" : "no");
  const ICONS = { proven: "holds", refuted: "fails" };

  function boundText(bound, p, classes) {
    if (bound.verdict === "refused") return "";
    if (bound.verdict !== "proven") return bound.reason;
    const mean = classes > 2 ? ` (${read((classes - 1) / p.tau)} for the mean over ${classes - 1} competitors)` : "";
    return `0-1 regret ≤ ${read(1 / p.tau)} × surrogate regret${mean}. ${bound.reason}`;
  }

  function certificate(p, declared) {
    const more = p.classes > 2 ? p.classes : 3;
    const rows = [
      ["Convex in the scores", yes(declared.is_convex)],
      ["Continuously differentiable", declared.is_c2 ? "twice (C2)" : "once (C1)"],
      ["Monotone (non-increasing)", yes(declared.is_monotone)],
      ["Lipschitz constant", read(declared.lipschitz)],
      ["Smoothness, sup φ″", read(declared.smoothness)],
      ["Bounds the 0-1 loss", yes(declared.bounds_zero_one)],
      ["Core, in the margin", `${p.sides === 2 ? signed(-p.tau, 2) : "−∞"} to ${signed(p.tau, 2)}`],
      ["Knots, in the margin", declared.knots.map((u) => text(Number(u.toFixed(4)))).join(", ")],
      ["Linear bound, 2 classes", boundText(declared.two, p, 2), declared.two.verdict],
      ["Linear bound, 3 or more", boundText(declared.more, p, more), declared.more.verdict],
    ];
    const list = at("certificate");
    list.replaceChildren();
    for (const [name, words, verdict] of rows) {
      const row = document.createElement("div");
      const term = document.createElement("dt");
      const description = document.createElement("dd");
      term.textContent = name;
      description.textContent = words;
      if (verdict) {
        const icon = ICONS[verdict] ?? "not-run";
        description.insertAdjacentHTML(
          "afterbegin",
          `<span class="verdict ${icon}"><svg class="icon ${icon}" aria-hidden="true"><use href="#icon-${icon}"/></svg><span>${verdict}</span></span> `,
        );
        row.className = "bound";
      }
      row.append(term, description);
      list.append(row);
    }
    const refusal = at("refusal");
    refusal.hidden = declared.two.verdict !== "refused";
    refusal.textContent = refusal.hidden ? "" : declared.two.reason;
  }

  function update() {
    const p = state();
    const declared = lc.declared(p);
    for (const name of ["tau", "sharpness", "lead", "t"]) at(`${name}-output`).value = signed(p[name], 2);
    at("formula").textContent = declared.formula;
    for (const name of ["value", "gradient", "curvature"]) drawLoss(name, p, declared);
    drawTransform(p);
    certificate(p, declared);
  }

  lc.state = state;
  form.addEventListener("input", update);
  // The controls are reset only after the event.
  form.addEventListener("reset", () => setTimeout(update));
  form.addEventListener("submit", (event) => event.preventDefault());
  update();
})();
