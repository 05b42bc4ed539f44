/**
 * Parses `--vmodule=reflector=5,watch*=3`: verbosity by file name without extension, or by component. `*` and `?` are wildcards.
 * @returns a lookup by name, which returns undefined without a match; undefined for `""`
 * @throws Error `syntax error: expect comma-separated list of filename=N`
 */
export function parseVmodule(text: string): ((name: string) => number | undefined) | undefined {
  if (text.trim() === "") return undefined;
  const rules = text
    .split(",")
    .filter((part) => part !== "")
    .map((part) => {
      const match = /^([^=]+)=([0-9]{1,6})$/.exec(part.trim());
      if (match === null) throw new Error("syntax error: expect comma-separated list of filename=N");
      return { pattern: match[1]!, level: Number(match[2]) };
    });
  return (name) => rules.find(({ pattern }) => matches(pattern, name))?.level;
}

/** Matches shell wildcards in linear time. */
function matches(pattern: string, name: string): boolean {
  let p = 0;
  let star = -1;
  let mark = 0;
  for (let n = 0; n < name.length; ) {
    if (pattern[p] === "?" || pattern[p] === name[n]) {
      p++;
      n++;
    } else if (pattern[p] === "*") {
      star = p++;
      mark = n;
    } else if (star >= 0) {
      p = star + 1;
      n = ++mark;
    } else return false;
  }
  while (pattern[p] === "*") p++;
  return p === pattern.length;
}
