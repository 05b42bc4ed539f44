/**
 * Escapes property names to CEL identifiers: `a-b` is `a__dash__b`, `namespace` is `__namespace__`.
 * Source: apiextensions-apiserver third_party/forked/celopenapi/model/escaping.go
 */

/** Reserved words of CEL. */
const reserved: ReadonlySet<string> = new Set(
  "true false null in as break const continue else for function if import let loop package namespace return var void while".split(
    " ",
  ),
);

const escapes: readonly (readonly [text: string, escaped: string])[] = [
  ["__", "underscores"],
  [".", "dot"],
  ["-", "dash"],
  ["/", "slash"],
];
const escapedBy: ReadonlyMap<string, string> = new Map(escapes);
const unescapedBy: ReadonlyMap<string, string> = new Map(escapes.map(([text, escaped]) => [escaped, text]));

/** @returns undefined for a name that cannot be escaped and is therefore not accessible */
export function escapeName(name: string): string | undefined {
  if (!/^[a-zA-Z_./-][a-zA-Z0-9_./-]*$/.test(name)) return undefined;
  if (reserved.has(name)) return `__${name}__`;
  return name.replace(/__|[./-]/g, (text) => `__${escapedBy.get(text)}__`);
}

/** @returns undefined for an identifier with an unknown escape */
export function unescapeName(identifier: string): string | undefined {
  let isName = true;
  const name = identifier.replace(/__[^_]+__/g, (part) => {
    const word = part.slice(2, -2);
    if (reserved.has(word) && part === identifier) return word;
    const text = unescapedBy.get(word);
    isName &&= text !== undefined;
    return text ?? "";
  });
  return isName ? name : undefined;
}
