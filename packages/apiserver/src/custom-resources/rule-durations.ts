/**
 * Durations in words, as the format `duration` takes them: `3 weeks 2 days`.
 * Source: k8s.io/kube-openapi pkg/validation/strfmt/duration.go
 */
const second = 1_000_000_000n;
const day = 86_400n * second;

/** What a unit is called; the last of its names may go on. */
const units: readonly (readonly [nanos: bigint, names: readonly string[]])[] = [
  [1n, ["ns", "nano"]],
  [1_000n, ["us", "µs", "micro"]],
  [1_000_000n, ["ms", "milli"]],
  [second, ["s", "sec"]],
  [60n * second, ["m", "min"]],
  [3600n * second, ["h", "hr", "hour"]],
  [day, ["d", "day"]],
  [7n * day, ["w", "wk", "week"]],
];

/** @returns nanoseconds; undefined where no unit is known */
export function parseWordyDuration(text: string): bigint | undefined {
  let sum: bigint | undefined;
  for (const [, count = "0", unit = ""] of text.matchAll(/(\d{1,18})\s*([A-Za-zµ]+)/g)) {
    const nanos = unitOf(unit.toLowerCase());
    if (nanos !== undefined) sum = BigInt.asIntN(64, (sum ?? 0n) + BigInt(count) * nanos);
  }
  return sum;
}

function unitOf(word: string): bigint | undefined {
  return units.find(([, names]) => names.includes(word) || word.startsWith(names.at(-1) as string))?.[0];
}
