/** Compiled patterns of schemas, cached: several checks of a definition and each validated value use them. */
import { Pattern, PatternError } from "@coxswain/apimachinery/objects/validation/pattern";
import { ByteShare, type CachedBytes } from "@coxswain/apimachinery/process/memory/byte-share";
import { perSchema, type Schema } from "./schema.ts";

/** A compiled pattern takes up to 200 times the memory of its text. Those of all schemas in the process share this limit. */
export const patternMemory = new ByteShare(48 * 1024 * 1024);
const bytesPerInstruction = 270;
const bytesPerPattern = 2048;

class Compiled implements CachedBytes {
  readonly sizeBytes: number;
  pattern: Pattern | PatternError | undefined;
  used = false;
  since = 0;

  constructor(pattern: Pattern | PatternError) {
    this.pattern = pattern;
    this.sizeBytes = pattern instanceof Pattern ? bytesPerPattern + pattern.instructions * bytesPerInstruction : bytesPerPattern;
  }

  drop(): void {
    this.pattern = undefined;
  }
}

const compiledOf = perSchema((): { last?: Compiled } => ({}));

/**
 * @param onCompiled called with the number of instructions when the pattern had to be compiled, which takes about 1 µs for each
 * @returns undefined for a schema without a pattern; a PatternError when it does not compile
 */
export function patternOf(schema: Schema, onCompiled?: (instructions: number) => void): Pattern | PatternError | undefined {
  if (!schema.pattern) return undefined;
  const known = compiledOf(schema);
  const kept = known.last?.pattern;
  if (known.last !== undefined && kept !== undefined) {
    known.last.used = true;
    return kept;
  }
  const pattern = compile(schema.pattern);
  known.last = new Compiled(pattern);
  patternMemory.keep(known.last);
  if (pattern instanceof Pattern) onCompiled?.(pattern.instructions);
  return pattern;
}

function compile(source: string): Pattern | PatternError {
  try {
    return new Pattern(source);
  } catch (err) {
    if (err instanceof PatternError) return err;
    throw err;
  }
}
