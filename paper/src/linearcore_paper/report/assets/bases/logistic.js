window.linearcoreBases.logistic = () => ({
  formula: "Φ(z) = log(1 + eᶻ)",
  value: (z) => Math.max(z, 0) + Math.log1p(Math.exp(-Math.abs(z))),
  derivative: (z) => (z >= 0 ? 1 / (1 + Math.exp(-z)) : Math.exp(z) / (1 + Math.exp(z))),
  curvature: (z) => Math.exp(-Math.abs(z)) / (1 + Math.exp(-Math.abs(z))) ** 2,
});
