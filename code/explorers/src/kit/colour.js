/** Heat: how much of a hue a cell shows. The same steps as in `glassformer.figures.style`. */

export const TEXT_STEPS = [0, 6, 12, 18, 24, 30, 36, 42, 47, 100];

/** The hue below zero and above it; other roles have one hue for both. */
const HUES = { residual: ["scores_low", "residual"], scores: ["scores_low", "scores_high"] };

/** Return the step, a percentage, for a magnitude from 0 to 1; from 0.8 on it is the full hue. */
export function stepOf(magnitude) {
  if (Number.isNaN(magnitude)) return 0;
  const share = Math.min(Math.max(magnitude, 0), 1) / 0.8;
  const last = TEXT_STEPS.length - 1;
  return TEXT_STEPS[Math.min(Math.floor(share * last + 1e-6), last)];
}

/** Return the palette's names for a role's hues: [below zero, above]. */
export function huesOf(role) {
  return HUES[role] ?? [role, role];
}

/** Return the largest finite magnitude of numbers, masked ones aside. */
export function largest(numbers) {
  let most = 0;
  for (const value of numbers) {
    const size = Math.abs(value);
    if (Number.isFinite(size) && value > -1e8 && size > most) most = size;
  }
  return most;
}
