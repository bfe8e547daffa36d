// The linear-core surrogate in double precision, with the closed forms of the library; tests compare the two.
// params: {base, sides, tau, sharpness, form, classes}
(function () {
  "use strict";
  const facts = JSON.parse(document.getElementById("facts").textContent);
  const FAR = 2 ** 40;

  // Φ, Φ' and Φ'' of every base, from its script in bases/ with the parameters of the library.
  const bases = {};
  for (const [name, { parameters }] of Object.entries(facts.bases)) bases[name] = window.linearcoreBases[name](parameters);

  // z is the distance from the end of the core in units of 1/β: right tail below 0, core from 0, left tail beyond `width`.
  const fromCoreEnd = (u, p) => (p.tau - u) * p.sharpness;
  const width = (p) => (p.sides === 2 ? 2 * p.sharpness * p.tau : Infinity);
  const bend = (z, p) => Math.min(z, 0) + Math.max(z - width(p), 0);

  function value(u, p) {
    const z = fromCoreEnd(u, p);
    const line = Math.min(Math.max(z, 0), width(p));
    return (line + bases[p.base].value(bend(z, p)) / facts.bases[p.base].slope_at_zero) / p.sharpness;
  }

  function derivative(u, p) {
    return -bases[p.base].derivative(bend(fromCoreEnd(u, p), p)) / facts.bases[p.base].slope_at_zero;
  }

  function curvature(u, p) {
    const z = fromCoreEnd(u, p);
    if (z > 0 && z <= width(p)) return 0;
    return (bases[p.base].curvature(bend(z, p)) * p.sharpness) / facts.bases[p.base].slope_at_zero;
  }

  // T(t) = φ(0) − inf_u [(1 − t)/2 φ(−u) + (1 + t)/2 φ(u)]; the risk is convex, so bisection on its slope finds the infimum.
  function transform(t, p) {
    const less = (1 - t) / 2;
    const more = (1 + t) / 2;
    const falls = (u) => more * derivative(u, p) - less * derivative(-u, p) < 0;
    let low = 0;
    let high = 1;
    while (falls(high) && high < FAR) [low, high] = [high, 2 * high];
    for (let step = 0; step < 100; step += 1) {
      const middle = (low + high) / 2;
      if (falls(middle)) low = middle;
      else high = middle;
    }
    const risk = (less > 0 ? less * value(-high, p) : 0) + more * value(high, p);
    return Math.max(value(0, p) - risk, 0);
  }

  // The margin of a class that leads all n − 1 competitors by `lead` is gain · lead + shift; the library gives both.
  const affine = (p) => facts.margins[p.form][p.classes];
  const margin = (lead, p) => affine(p).gain * lead + affine(p).shift;
  const leadOf = (u, p) => (u - affine(p).shift) / affine(p).gain;
  const gain = (p) => affine(p).gain;

  const loss = {
    value: (lead, p) => value(margin(lead, p), p),
    gradient: (lead, p) => derivative(margin(lead, p), p) * gain(p),
    curvature: (lead, p) => curvature(margin(lead, p), p) * gain(p) ** 2,
  };

  // The library's declared facts at these params: τ moves the knots, β multiplies the smoothness, nothing else changes.
  function declared(p) {
    const base = facts.bases[p.base];
    const fixed = base.sides[p.sides];
    const right = base.knots_right_of_core.map((z) => p.tau - z / p.sharpness);
    const left = base.knots_left_of_core.map((z) => -p.tau - z / p.sharpness);
    return {
      ...fixed,
      lipschitz: fixed.lipschitz ?? Infinity,
      smoothness: fixed.smoothness === null ? Infinity : fixed.smoothness * p.sharpness,
      knots: (p.sides === 2 ? [...left, ...right] : right).sort((a, b) => a - b),
      core: [p.sides === 2 ? -p.tau : -Infinity, p.tau],
      bounds_zero_one: value(0, p) >= 1,
      ...facts.forms[p.form][p.base][p.sides],
      formula: bases[p.base].formula,
    };
  }

  window.linearcore = { value, derivative, curvature, transform, margin, leadOf, loss, declared };
})();
