/**
 * Measures whether the duration of a check depends on how much of a guess is right. There are two doors with different
 * secrets. Guesses derived from both secrets (right except for the end) are presented to both doors; each guess is near for
 * one door and far for the other. Near and far guesses are therefore the same texts: with different texts (say, right prefixes
 * and random ones) branch prediction alone would distinguish them. For the same reason all guesses are built by the same steps
 * before the measurement and presented in random order; otherwise string representations, cache state and garbage collection
 * would be measured.
 * Source: Reparaz, Balasch, Verbauwhede, "Dude, is my code constant time?" (2016): Welch's t-test over cropped samples
 */
import { createHash } from "node:crypto";

export interface Door {
  /** ASCII; both doors have secrets of the same length. */
  readonly secret: string;
  /** May reject by throwing. */
  check(guess: string): unknown;
}

/** Number of guesses built in advance and then checked back to back. */
const batch = 500;
/** Random characters at the end of a guess: enough to make each one unique, so that no cache recognizes it. */
const randomLength = 8;
const alphabet = "abcdefghijklmnopqrstuvwxyz012345";
/** Quantiles of the sorted measurements to compare: the longest ones contain pauses of the machine. */
const crops = [0.5, 0.75, 0.9, 0.95, 0.99];

/**
 * @param guesses number of measurements, after 10% more for warm-up
 * @param seed makes the guesses reproducible
 * @returns the maximum |t| of all crops; above 5 near and far differ significantly (one false alarm in a million runs)
 */
export async function timingLeak(doors: readonly [Door, Door], guesses: number, seed: string): Promise<number> {
  const { length } = doors[0].secret;
  const samples = { near: newSample(guesses), far: newSample(guesses) };
  const warmUp = Math.ceil(guesses / 10 / batch);
  const batches = warmUp + Math.ceil(guesses / batch);
  for (let number = 0; number < batches; number++) {
    const { texts, kinds } = writeGuesses(doors, `${seed}/${number}`);
    for (const [i, { at, near }] of kinds.entries()) {
      const guess = texts.toString("latin1", i * length, (i + 1) * length);
      const began = process.hrtime.bigint();
      try {
        await at.check(guess);
      } catch {
        // Rejected as expected.
      }
      const tookNs = Number(process.hrtime.bigint() - began);
      if (number >= warmUp) (near ? samples.near : samples.far).add(tookNs);
    }
  }
  const [near, far] = [samples.near.sorted(), samples.far.sorted()];
  const all = Float64Array.from([...near, ...far]).sort();
  const scores = crops.map((crop) => {
    const limitNs = all[Math.floor(all.length * crop)] as number;
    return Math.abs(welch(upTo(near, limitNs), upTo(far, limitNs)));
  });
  return Math.max(...scores);
}

/** Builds a batch of guesses in one buffer, with the door for each. */
function writeGuesses(doors: readonly [Door, Door], seed: string) {
  const random = (what: string, length: number): Buffer =>
    createHash("shake256", { outputLength: length }).update(`${seed}/${what}`).digest();
  const { length } = doors[0].secret;
  const secrets = doors.map(({ secret }) => Buffer.from(secret, "latin1"));
  const texts = random("texts", batch * length).map((byte) => alphabet.charCodeAt(byte % alphabet.length)) as Buffer;
  const kinds = [...random("kinds", batch)].map((byte, i) => {
    const [ofDoor, atDoor] = [byte & 1, (byte >> 1) & 1];
    (secrets[ofDoor] as Buffer).copy(texts, i * length, 0, length - randomLength);
    return { at: doors[atDoor] as Door, near: ofDoor === atDoor };
  });
  return { texts, kinds };
}

function newSample(most: number) {
  const values = new Float64Array(most + batch);
  let count = 0;
  return {
    add(value: number): void {
      values[count++] = value;
    },
    sorted: (): Float64Array => values.subarray(0, count).sort(),
  };
}

function upTo(sorted: Float64Array, limit: number): Float64Array {
  const end = sorted.findIndex((value) => value > limit);
  return end === -1 ? sorted : sorted.subarray(0, end);
}

function welch(a: Float64Array, b: Float64Array): number {
  const [first, second] = [momentsOf(a), momentsOf(b)];
  return (first.mean - second.mean) / Math.sqrt(first.variance / a.length + second.variance / b.length);
}

function momentsOf(values: Float64Array): { mean: number; variance: number } {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  return { mean, variance: values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1) };
}
