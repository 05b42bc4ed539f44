/**
 * Linux starts no program with more bytes of arguments and environment, whatever its limits are. Variables that name others can
 * double twenty times in a small Pod. Source: Linux fs/exec.c bprm_stack_limits
 */
export const mostCharacters = 6 * 1024 * 1024;

/** @throws Error for a length that no program can be started with */
export function checkLength(length: number): void {
  if (length > mostCharacters)
    throw new Error(
      `the container's environment or command is longer than ${mostCharacters} characters, which Linux does not start`,
    );
}

/**
 * Replaces `$(NAME)` by the result of `lookup`; unknown names are left unchanged, and `$$(NAME)` yields the text `$(NAME)`.
 * @throws Error for a result that no program can be started with
 * Source: third_party/forked/golang/expansion
 */
export function expand(text: string, lookup: (name: string) => string | undefined): string {
  let out = "";
  let from = 0;
  const lastEnd = text.lastIndexOf(")"); // looked for behind each of 500,000 `$(`, its absence would take minutes to find
  for (let i = 0; i < text.length; i++) {
    if (text[i] !== "$" || i + 1 >= text.length) continue;
    checkLength(out.length);
    out += text.slice(from, i);
    const next = text[i + 1];
    if (next === "$") {
      out += "$";
      i += 1;
    } else if (next === "(") {
      const end = i + 2 > lastEnd ? -1 : text.indexOf(")", i + 2);
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
