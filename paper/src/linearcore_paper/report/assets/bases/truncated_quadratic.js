window.linearcoreBases.truncated_quadratic = () => ({
  formula: "Φ(z) = ½(1 + z)² for z > −1, else 0",
  value: (z) => 0.5 * Math.max(1 + z, 0) ** 2,
  derivative: (z) => Math.max(1 + z, 0),
  curvature: (z) => (z > -1 ? 1 : 0),
});
