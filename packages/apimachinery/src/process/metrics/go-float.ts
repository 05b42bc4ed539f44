/** Formats a number like Go's `%g`, as in YAML and for Prometheus' bucket bounds: `0.005`, `1`, `1e+06`, `+Inf`. */
export function goFloat(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return "+Inf";
  if (value === Number.NEGATIVE_INFINITY) return "-Inf";
  if (value === 0 || Number.isNaN(value)) return Number.isNaN(value) ? "NaN" : "0";
  // Cast: toExponential always writes an exponent.
  const [mantissa, exponentText] = value.toExponential().split("e") as [string, string];
  const exponent = Number(exponentText);
  if (exponent >= -4 && exponent < 6) return String(value);
  return `${mantissa}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
}
