import { plans as all, planOf } from "../plans/catalogue.ts";
import type { Plan } from "../plans/plan.ts";

/** Number of test files between which the seeds are divided, so that they run on several cores. */
export const parts = 2;

interface SeedsOfPart {
  readonly first: number;
  readonly count: number;
  planOf(seed: number): Plan;
}

/** Of `./cox test`: without plans that restore etcd, since any change of the product may make those find another open case. */
const usual = { seeds: 1_000, plans: all.filter(({ losesHistory }) => losesHistory !== true) };
/** Of the long form: more seeds than a night has time for. */
const long = { seeds: 200_000, plans: all };

/** @param part from 0 @param day a long form has other seeds on each day: days since the epoch */
export function seedsOf(part: number, day?: number): SeedsOfPart {
  const { seeds, plans } = day === undefined ? usual : long;
  const count = seeds / parts;
  const before = day === undefined ? 0 : (day % 10_000) * seeds;
  return { first: before + part * count + 1, count, planOf: (seed) => planOf(seed, plans) };
}
