window.linearcoreBases.quartic = ({ a, constant }) => ({
  formula: "Φ(z) = z + z⁴/12 + K, the paper’s C2 example",
  value: (z) => z * (a + (z * z * z) / 12) + constant,
  derivative: (z) => a + (z * z * z) / 3,
  curvature: (z) => z * z,
});
