// A line plot in SVG: axes, a shaded band, knots, a dashed reference line, the curve, and a draggable mark.
(function () {
  "use strict";
  const NS = "http://www.w3.org/2000/svg";
  const [LEFT, RIGHT, TOP, BOTTOM] = [44, 330, 10, 178];
  const clamp = (x, low, high) => Math.min(Math.max(x, low), high);

  // Rounds x up to one of `numbers` times a power of ten, for tick steps and axis limits.
  function roundUp(x, numbers) {
    const power = 10 ** Math.floor(Math.log10(x));
    return numbers.map((step) => step * power).find((step) => step >= x * (1 - 1e-9));
  }
  const tickStep = (x) => roundUp(x, [1, 2, 5, 10]);
  const coarse = (x) => roundUp(x, [1, 3, 10]);
  const roof = (x) => roundUp(x, [1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10]);

  function text(x) {
    const rounded = Number(x.toPrecision(6));
    return String(rounded).replace("-", "−");
  }

  function ticks(low, high, count) {
    const step = tickStep((high - low) / count);
    const found = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) found.push(Number((k * step).toPrecision(12)));
    return found;
  }

  function element(parent, name, attributes, content) {
    const made = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (content !== undefined) made.textContent = content;
    parent.append(made);
    return made;
  }

  // options: x: [low, high], xLabel, move: called with x while the pointer drags.
  function plot(svg, options) {
    const [xLow, xHigh] = options.x;
    const toX = (x) => LEFT + ((x - xLow) / (xHigh - xLow)) * (RIGHT - LEFT);
    const clip = `${svg.id}-clip`;
    const frame = { x: LEFT, y: TOP, width: RIGHT - LEFT, height: BOTTOM - TOP };
    element(element(svg, "clipPath", { id: clip }), "rect", frame);
    const back = element(svg, "g", {});
    const inside = element(svg, "g", { "clip-path": `url(#${clip})` });
    const label = { x: (LEFT + RIGHT) / 2, y: 206, "text-anchor": "middle", class: "label" };
    element(svg, "text", label, options.xLabel);

    function pointed(event) {
      const box = svg.getBoundingClientRect();
      const pixel = ((event.clientX - box.left) / box.width) * 340;
      options.move(clamp(xLow + ((pixel - LEFT) / (RIGHT - LEFT)) * (xHigh - xLow), xLow, xHigh));
    }
    svg.addEventListener("pointerdown", (event) => {
      svg.setPointerCapture(event.pointerId);
      pointed(event);
    });
    svg.addEventListener("pointermove", (event) => {
      if (svg.hasPointerCapture(event.pointerId)) pointed(event);
    });

    // drawn: {y: [low, high], points, reference, band, knots, mark: [x, y]}
    return function draw(drawn) {
      const [yLow, yHigh] = drawn.y;
      const toY = (y) => BOTTOM - ((clamp(y, yLow - 9 * (yHigh - yLow), yHigh + 9 * (yHigh - yLow)) - yLow) / (yHigh - yLow)) * (BOTTOM - TOP);
      const path = (points) => points.map(([x, y], k) => `${k ? "L" : "M"}${toX(x).toFixed(3)} ${toY(y).toFixed(3)}`).join("");
      svg.dataset.x = [xLow, xHigh, LEFT, RIGHT].join(" ");
      svg.dataset.y = [yLow, yHigh, BOTTOM, TOP].join(" ");
      back.replaceChildren();
      inside.replaceChildren();
      if (drawn.band) {
        const [from, to] = drawn.band.map((x) => toX(clamp(x, xLow, xHigh)));
        element(back, "rect", { x: from, y: TOP, width: Math.max(to - from, 0), height: BOTTOM - TOP, class: "band" });
      }
      for (const y of ticks(yLow, yHigh, 4)) {
        element(back, "line", { x1: LEFT, x2: RIGHT, y1: toY(y), y2: toY(y), class: y === 0 ? "axis" : "grid" });
        element(back, "text", { x: LEFT - 6, y: toY(y) + 4, "text-anchor": "end" }, text(y));
      }
      for (const x of ticks(xLow, xHigh, 6)) {
        element(back, "line", { x1: toX(x), x2: toX(x), y1: BOTTOM, y2: BOTTOM + 4, class: "axis" });
        element(back, "text", { x: toX(x), y: BOTTOM + 16, "text-anchor": "middle" }, text(x));
      }
      for (const x of drawn.knots || []) element(inside, "line", { x1: toX(x), x2: toX(x), y1: TOP, y2: BOTTOM, class: "knot" });
      if (drawn.reference) element(inside, "path", { d: path(drawn.reference), class: "reference" });
      element(inside, "path", { d: path(drawn.points), class: "curve" });
      const [x, y] = drawn.mark;
      element(inside, "line", { x1: toX(x), x2: toX(x), y1: TOP, y2: BOTTOM, class: "mark" });
      element(inside, "circle", { cx: toX(x), cy: toY(y), r: 4.5, class: "mark" });
    };
  }

  window.linearcorePlot = { plot, roof, coarse, text };
})();
