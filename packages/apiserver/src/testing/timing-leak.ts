/**
 * Does the time of a check tell how much of a guess was right? There are two doors, each with a secret of its own, and
 * guesses at both secrets (right but for the end) are shown to both doors. A guess is near at its own door and far at the
 * other one, so near and far guesses are the same texts, and differ by nothing but what the door knows. Texts of two
 * kinds (say, right beginnings and random ones) would be told apart by the branches that the processor predicts for the
 * one and not for the other, whatever the secret is. For the same reason all guesses are written by the same steps
 * before the clock starts and come in an order drawn at random: otherwise strings of another inner form, warm caches
 * and the collector's work on what one kind left behind would be measured.
 * Source: Reparaz, Balasch, Verbauwhede, "Dude, is my code constant time?" (2016): Welch's t-test over cropped samples
 */
import { createHash } from "node:crypto";

export interface Door {
  /** ASCII, at both doors of one length. */
  readonly secret: string;
  /** May refuse by throwing. */
  check(guess: string): unknown;
}

/** That are written before the clock starts, and then checked with nothing in between. */
const batch = 500;
/** So much of a guess's end is random: enough that none comes twice, which a cache would notice. */
const randomLength = 8;
const alphabet = "abcdefghijklmnopqrstuvwxyz012345";
/** Which part of all measurements, the shortest first, is compared: pauses of the machine are at the end. */
const crops = [0.5, 0.75, 0.9, 0.95, 0.99];

/**
 * @param guesses how many are measured, after a tenth more to warm up
 * @param seed the same one makes the same guesses
 * @returns the greatest |t| of all crops: beyond 5 near and far are told apart, which chance does once in a million runs
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
        // Refused, as it has to be.
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

/** A batch of guesses, one text behind the other, and where each is shown. */
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
