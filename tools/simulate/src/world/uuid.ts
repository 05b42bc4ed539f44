const hex = "0123456789abcdef";
/** Places after which a UUID has a dash. */
const dashes: ReadonlySet<number> = new Set([7, 11, 15, 19]);

/** A version 4 UUID from random numbers in [0, 1), one for each digit and one for the variant. */
export function uuidOf(random: () => number): string {
  let before = "";
  let after = "";
  for (let at = 0; at < 32; at++) {
    const digit = hex[Math.floor(random() * 16)]!;
    if (at < 16) before += at === 12 ? "4" : digit;
    else if (at > 16) after += digit;
    if (dashes.has(at)) {
      if (at < 16) before += "-";
      else after += "-";
    }
  }
  return before + "89ab"[Math.floor(random() * 4)]! + after;
}
