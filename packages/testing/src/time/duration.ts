/** Milliseconds, or `"90s"`, `"1h30m"`, `"250ms"`, `"2d"`. */
export type Duration = number | string;

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** @throws Error for an invalid text, and for negative or infinite numbers */
export function durationMs(given: Duration): number {
  if (typeof given === "number") {
    if (Number.isFinite(given) && given >= 0) return given;
    throw new Error(`${given} is not a duration: it has to be a number of milliseconds that is not negative`);
  }
  const parts = [...given.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)];
  if (parts.length === 0 || parts.map(([whole]) => whole).join("") !== given) {
    throw new Error(`${JSON.stringify(given)} is not a duration: write "250ms", "90s", "1h30m" or "2d"`);
  }
  return parts.reduce((sum, [, number, unit]) => sum + Number(number) * (unitMs[unit as string] as number), 0);
}
