window.linearcoreBases.exponential = ({ linear_past: past }) => ({
  formula: `Φ(z) = eᶻ, linear for z > ${past}`,
  value: (z) => Math.exp(Math.min(z, past)) * (1 + Math.max(z - past, 0)),
  derivative: (z) => Math.exp(Math.min(z, past)),
  curvature: (z) => (z <= past ? Math.exp(z) : 0),
});
