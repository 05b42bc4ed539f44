/**
 * Shortens an input by removing chunks, halves first, while the property still holds.
 * @param most maximum number of candidates to try
 */
export async function minimised(input: Buffer, has: (candidate: Buffer) => Promise<boolean>, most = 2000): Promise<Buffer> {
  let best = input;
  let looks = 0;
  for (let size = Math.ceil(best.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < best.length && looks < most; looks++) {
      const candidate = Buffer.concat([best.subarray(0, at), best.subarray(at + size)]);
      if (await has(candidate)) best = candidate;
      else at += size;
    }
  }
  return best;
}
