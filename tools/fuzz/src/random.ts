import { randomOf } from "@coxswain/apimachinery/testing/random";

/** A random integer from 0 up to, but not including, `n`. */
export type Below = (n: number) => number;

/** Deterministic for a seed. */
export function belowOf(seed: number): Below {
  const random = randomOf(seed);
  return (n) => Math.floor(random() * n);
}
