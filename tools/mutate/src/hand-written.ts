import { createHash } from "node:crypto";
import type { Mutant } from "./mutants.ts";

/** One entry of the file given by `--faults`. */
interface Fault {
  /** Relative to the repository. */
  readonly file: string;
  /** A text that occurs once in the file. */
  readonly old: string;
  /** The text that replaces it. */
  readonly new: string;
  /** Description of the fault, for the report of survivors. */
  readonly why: string;
}

/**
 * Mutants of a JSON list of hand-written faults, `[{"file", "old", "new", "why"}]`.
 * @param textOf text of a file; undefined when it does not exist
 * @throws Error naming the first entry that is not a fault of its file
 */
export function handWritten(json: string, textOf: (file: string) => string | undefined): Mutant[] {
  const faults: unknown = JSON.parse(json);
  if (!Array.isArray(faults)) throw new Error("it is not a list of faults");
  return faults.map((fault, i) => {
    try {
      return mutantOf(fault, textOf);
    } catch (err) {
      throw new Error(`entry ${i + 1}: ${(err as Error).message}`, { cause: err }); // cast: Errors only
    }
  });
}

function mutantOf(fault: Partial<Fault> | null, textOf: (file: string) => string | undefined): Mutant {
  const { file, old, new: text, why } = fault ?? {};
  if (![file, old, text, why].every((field) => typeof field === "string") || old === "" || old === text) {
    throw new Error('it needs "file", "old", another text as "new", and "why"');
  }
  const [path, wanted] = [file!, old!];
  const source = textOf(path);
  if (source === undefined) throw new Error(`there is no source file ${path}`);
  const start = source.indexOf(wanted);
  if (start < 0) throw new Error(`${path} does not contain ${JSON.stringify(wanted)}`);
  if (source.includes(wanted, start + 1)) throw new Error(`${path} contains ${JSON.stringify(wanted)} more than once`);
  const id = createHash("sha256")
    .update(JSON.stringify([path, wanted, text]))
    .digest("hex")
    .slice(0, 10);
  const line = source.slice(0, start).split("\n").length;
  return {
    id,
    kind: "hand-written",
    file: path,
    line,
    edit: { start, end: start + wanted.length, text: text! },
    why: why!,
  };
}
