/**
 * Durations in words, as accepted by the format `duration`: `3 weeks 2 days`.
 * Source: k8s.io/kube-openapi pkg/validation/strfmt/duration.go
 */
const second = 1_000_000_000n;
const day = 86_400n * second;

/** Unit names; the last one of each also matches as a prefix (`second` for `sec`). */
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

/** @returns nanoseconds, wrapped to 64 bits; undefined when it contains no known unit */
export function parseWordyDuration(text: string): bigint | undefined {
  let sum: bigint | undefined;
  for (const [, count = "0", unit = ""] of text.matchAll(/(\d{1,18})\s*([A-Za-zµ]+)/g)) {
    const nanos = unitOf(unit.toLowerCase());
    if (nanos !== undefined) sum = BigInt.asIntN(64, (sum ?? 0n) + BigInt(count) * nanos);
  }
  return sum;
}

function unitOf(word: string): bigint | undefined {
  return units.find(([, names]) => names.includes(word) || word.startsWith(names.at(-1)!))?.[0];
}
