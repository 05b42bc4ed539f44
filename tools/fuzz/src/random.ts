import { randomOf } from "@coxswain/apimachinery/testing/random";

/** From 0 up to, but not including, `n`. */
export type Below = (n: number) => number;

/** The same seed gives the same numbers. */
export function belowOf(seed: number): Below {
  const random = randomOf(seed);
  return (n) => Math.floor(random() * n);
}
