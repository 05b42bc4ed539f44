/**
 * Replaces `$(NAME)` by the result of `lookup`; unknown names are left unchanged, and `$$(NAME)` yields the text `$(NAME)`.
 * Source: third_party/forked/golang/expansion
 */
export function expand(text: string, lookup: (name: string) => string | undefined): string {
  let out = "";
  let from = 0;
  for (let i = 0; i < text.length; i++) {
    if (text[i] !== "$" || i + 1 >= text.length) continue;
    out += text.slice(from, i);
    const next = text[i + 1];
    if (next === "$") {
      out += "$";
      i += 1;
    } else if (next === "(") {
      const end = text.indexOf(")", i + 2);
      if (end < 0) {
        out += "$(";
        i += 1;
      } else {
        const name = text.slice(i + 2, end);
        out += lookup(name) ?? `$(${name})`;
        i = end;
      }
    } else {
      out += `$${next}`;
      i += 1;
    }
    from = i + 1;
  }
  return out + text.slice(from);
}
