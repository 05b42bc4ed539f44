import type { Mutant } from "./mutants.ts";

/**
 * All mutants in an order determined by the seed. Cycles through the kinds, so that rare kinds are drawn as often as frequent
 * ones.
 */
export function* draw(mutants: readonly Mutant[], seed: number): Generator<Mutant> {
  const random = randomBy(seed);
  const byKind = Map.groupBy(mutants, ({ kind }) => kind);
  const left = [...byKind.values()].map((list) => shuffled(list, random));
  while (left.length > 0) {
    for (const list of shuffled(left, random)) {
      const mutant = list.pop();
      if (mutant !== undefined) yield mutant;
      else left.splice(left.indexOf(list), 1);
    }
  }
}

function shuffled<T>(list: readonly T[], random: () => number): T[] {
  const result = [...list];
  for (let i = result.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [result[i], result[j]] = [result[j]!, result[i]!];
  }
  return result;
}

/** Pseudo-random numbers in [0, 1), deterministic for a seed. Source: mulberry32 */
function randomBy(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
