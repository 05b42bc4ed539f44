type TokenType = "error" | "end" | "identifier" | ")" | "," | "!" | "==" | "=" | ">" | "in" | "<" | "!=" | "notin" | "(";

export interface Token {
  readonly type: TokenType;
  readonly text: string;
}

const keywords: ReadonlySet<string> = new Set([")", ",", "!", "==", "=", ">", "in", "<", "!=", "notin", "("]);
const special = "=!(),><";
const blank = " \t\r\n";

/**
 * The tokens of a label selector; the last one is `end`. Special characters form the longest known symbol; a NUL ends the
 * text.
 * Source: k8s.io/apimachinery pkg/labels/selector.go, Lexer
 */
export function tokenize(text: string): Token[] {
  const nul = text.indexOf("\0");
  const source = nul < 0 ? text : text.slice(0, nul);
  const tokens: Token[] = [];
  let at = 0;
  for (;;) {
    while (at < source.length && blank.includes(source[at]!)) at++;
    if (at >= source.length) break;
    const stop = special.includes(source[at]!) ? endOfSymbol(source, at) : endOfWord(source, at);
    const token = source.slice(at, stop);
    // Cast: keywords are token types.
    tokens.push({ type: keywords.has(token) ? (token as TokenType) : "identifier", text: token });
    at = stop;
  }
  tokens.push({ type: "end", text: "" });
  return tokens;
}

function endOfSymbol(source: string, start: number): number {
  const two = source.slice(start, start + 2);
  return start + (two === "==" || two === "!=" ? 2 : 1);
}

function endOfWord(source: string, start: number): number {
  let at = start;
  while (at < source.length && !special.includes(source[at]!) && !blank.includes(source[at]!)) at++;
  return at;
}
