/** Compiled patterns of schemas, cached: several checks of a definition and each validated value use them. */
import { Pattern, PatternError } from "@coxswain/apimachinery/objects/validation/pattern";
import { perSchema, type Schema } from "./schema.ts";

/** @returns undefined for a schema without a pattern; a PatternError when it does not compile */
export function patternOf(schema: Schema): Pattern | PatternError | undefined {
  return schema.pattern ? compiledOf(schema).pattern : undefined;
}

const compiledOf = perSchema((schema) => ({ pattern: compile(schema.pattern ?? "") }));

function compile(source: string): Pattern | PatternError {
  try {
    return new Pattern(source);
  } catch (err) {
    if (err instanceof PatternError) return err;
    throw err;
  }
}
