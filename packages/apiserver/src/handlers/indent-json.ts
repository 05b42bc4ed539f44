/**
 * `?pretty=true`: JSON with two spaces of indentation, as Go's `json.Indent` writes it. Works on text, so that key order
 * and numbers beyond 2^53 stay as they are.
 */
export function indentJson(json: string): string {
  let out = "";
  let depth = 0;
  let start = 0;
  let inString = false;
  for (let i = 0; i < json.length; i++) {
    const char = json.charCodeAt(i);
    if (inString) {
      if (char === backslash) i++;
      else if (char === quote) inString = false;
      continue;
    }
    switch (char) {
      case quote:
        inString = true;
        break;
      case openBrace:
      case openBracket:
        if (json.charCodeAt(i + 1) === char + 2) {
          i++; // stays `{}` or `[]`
          break;
        }
        depth++;
        out += json.slice(start, i + 1) + newline(depth);
        start = i + 1;
        break;
      case closeBrace:
      case closeBracket:
        depth--;
        out += json.slice(start, i) + newline(depth);
        start = i;
        break;
      case comma:
        out += json.slice(start, i + 1) + newline(depth);
        start = i + 1;
        break;
      case colon:
        out += `${json.slice(start, i + 1)} `;
        start = i + 1;
        break;
    }
  }
  return out + json.slice(start);
}

/** True when the client asked for it, or looks like a person with a browser or curl and did not decline. */
export function wantsIndent(query: URLSearchParams, userAgent: string | undefined): boolean {
  const value = query.get("pretty");
  if (value !== null && value !== "") return !(value === "0" || value.toLowerCase() === "false");
  return /^(curl|Wget|Mozilla\/5\.0)/.test(userAgent ?? "");
}

const [quote, backslash, openBrace, closeBrace, openBracket, closeBracket, comma, colon] = [...'"\\{}[],:'].map((c) =>
  c.charCodeAt(0),
);

const newlines: string[] = [];

function newline(depth: number): string {
  newlines[depth] ??= `\n${"  ".repeat(depth)}`;
  return newlines[depth];
}
