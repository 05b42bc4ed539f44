import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const kept = fileURLToPath(new URL("../corpus", import.meta.url));
/** Limit of one input's size; all files of a target together stay below 300 kB. */
const maxBytes = 3000;

/** Files of fixed faults are named `fault-…`; each of the others covers code that no other one does. */
export function readCorpus(target: string): Buffer[] {
  const folder = join(kept, target);
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .sort()
    .map((name) => readFileSync(join(folder, name)));
}

/**
 * Replaces the corpus except the inputs of faults.
 * @param inputs the most useful first; inputs beyond the size limit are dropped
 */
export function writeCorpus(target: string, inputs: readonly Buffer[]): number {
  const folder = join(kept, target);
  mkdirSync(folder, { recursive: true });
  for (const name of readdirSync(folder)) if (!name.startsWith("fault-")) rmSync(join(folder, name));
  let bytes = 0;
  let written = 0;
  for (const input of inputs) {
    if (bytes + input.length > maxBytes) continue;
    bytes += input.length;
    written++;
    writeFileSync(join(folder, nameOf(input)), input);
  }
  return written;
}

/** File name of an input in the corpus: the first 12 digits of its SHA-256. */
export function nameOf(input: Buffer): string {
  return createHash("sha256").update(input).digest("hex").slice(0, 12);
}
