window.linearcoreBases.gamma = () => {
  const distance = (z) => Math.min(Math.abs(z), 746);
  const slope = (a) => (a * (a + 2) + 2) * Math.exp(-a);
  return {
    formula: "Φ″(z) = z² e^−|z|, integrated twice",
    value: (z) => {
      const a = distance(z);
      return 4 * Math.max(z, 0) + (a * (a + 4) + 6) * Math.exp(-a);
    },
    derivative: (z) => (z > 0 ? 4 - slope(distance(z)) : slope(distance(z))),
    curvature: (z) => distance(z) ** 2 * Math.exp(-distance(z)),
  };
};
