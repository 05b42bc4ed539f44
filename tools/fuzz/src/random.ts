/** From 0 up to, but not including, `n`. */
export type Below = (n: number) => number;

/** Numbers that a seed decides (xorshift32). */
export function belowOf(seed: number): Below {
  let state = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) || 1;
  return (n) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % n;
  };
}
