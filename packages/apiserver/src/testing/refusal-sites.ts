/** Functions that create field errors. Source: the API machinery's errors/field-error.ts */
export const refusals = [
  "duplicate",
  "fieldNotFound",
  "forbiddenField",
  "internalField",
  "invalidValue",
  "notSupported",
  "required",
  "tooLong",
  "tooMany",
] as const;

const call = new RegExp(`(?<![\\w.])(?:${refusals.join("|")})\\(`, "g");

/** Positions of calls in a source, `line:column` as in stack traces. Calls in comments are skipped. */
export function refusalSites(source: string): string[] {
  return source.split("\n").flatMap((line, i) => {
    const code = /^\s*(?:\*|\/\/|\/\*)/.test(line) ? "" : line;
    return [...code.matchAll(call)].map((match) => `${i + 1}:${match.index + 1}`);
  });
}
