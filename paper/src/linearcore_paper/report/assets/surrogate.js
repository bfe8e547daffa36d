// The linear-core surrogate in double precision, from the same closed forms as the library; tests hold the two together.
// params: {base, sides, tau, sharpness, form, classes}
(function () {
  "use strict";
  const facts = JSON.parse(document.getElementById("facts").textContent);
  const FAR = 2 ** 40;

  const distance = (z) => Math.min(Math.abs(z), 746);
  const gammaSlope = (a) => (a * (a + 2) + 2) * Math.exp(-a);
  const { slope, at_zero: constant } = facts.bases.quartic;
  const past = facts.bases.exponential.linear_past;

  // Φ, Φ' and Φ'' of every base.
  const bases = {
    logistic: {
      value: (z) => Math.max(z, 0) + Math.log1p(Math.exp(-Math.abs(z))),
      derivative: (z) => (z >= 0 ? 1 / (1 + Math.exp(-z)) : Math.exp(z) / (1 + Math.exp(z))),
      curvature: (z) => Math.exp(-Math.abs(z)) / (1 + Math.exp(-Math.abs(z))) ** 2,
    },
    exponential: {
      value: (z) => Math.exp(Math.min(z, past)) * (1 + Math.max(z - past, 0)),
      derivative: (z) => Math.exp(Math.min(z, past)),
      curvature: (z) => (z <= past ? Math.exp(z) : 0),
    },
    quartic: {
      value: (z) => z * (slope + (z * z * z) / 12) + constant,
      derivative: (z) => slope + (z * z * z) / 3,
      curvature: (z) => z * z,
    },
    truncated_quadratic: {
      value: (z) => 0.5 * Math.max(1 + z, 0) ** 2,
      derivative: (z) => Math.max(1 + z, 0),
      curvature: (z) => (z > -1 ? 1 : 0),
    },
    gamma: {
      value: (z) => {
        const a = distance(z);
        return 4 * Math.max(z, 0) + (a * (a + 4) + 6) * Math.exp(-a);
      },
      derivative: (z) => (z > 0 ? 4 - gammaSlope(distance(z)) : gammaSlope(distance(z))),
      curvature: (z) => distance(z) ** 2 * Math.exp(-distance(z)),
    },
  };

  // z counts from the end of the core, in units of 1/β: right tail below 0, core from 0, left tail (if any) past `width`.
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

  // The margin of a class that leads all its n − 1 competitors by `lead`, and how fast the margin grows with the lead.
  const margins = {
    pairwise: (lead) => lead,
    centered: (lead, n) => lead / n,
    logodds: (lead, n) => lead - Math.log(n - 1),
  };
  const margin = (lead, p) => margins[p.form](lead, p.classes);
  const leadOf = (u, p) => (p.form === "centered" ? u * p.classes : u - margins[p.form](0, p.classes));
  const gain = (p) => (p.form === "centered" ? 1 / p.classes : 1);

  const loss = {
    value: (lead, p) => value(margin(lead, p), p),
    gradient: (lead, p) => derivative(margin(lead, p), p) * gain(p),
    curvature: (lead, p) => curvature(margin(lead, p), p) * gain(p) ** 2,
  };

  // The library's declared facts at these params: τ moves knots, β multiplies the smoothness, the rest stays.
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
      formula: base.formula,
    };
  }

  window.linearcore = { value, derivative, curvature, transform, margin, leadOf, loss, declared };
})();
