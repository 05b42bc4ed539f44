/**
 * Whether a file has a test of this name. The name may be a literal, an entry of a table (`{ name: "…" }`), or match a template
 * (`test(\`refuses ${x}\`)`), whose placeholders match anything.
 */
export function hasTest(source: string, name: string): boolean {
  const literals = literalsOf(source);
  return literals.some(({ text, template }) => {
    if (!template) return text === name;
    // `${a} ${b}`: placeholders alone match everything, so require that the last one is a string of the file.
    if (fixedParts(text).join("").trim() === "") return literals.some((end) => !end.template && isEndOf(end.text, name));
    return matches(text, name);
  });
}

function isEndOf(text: string, name: string): boolean {
  return text !== "" && name.endsWith(` ${text}`);
}

interface Literal {
  readonly text: string;
  readonly template: boolean;
}

const opened = /(?:^|[^\w.])(?:test|it|suite|describe)\(\s*$/;

/** All string literals of the file, and template literals used as test names. */
function literalsOf(source: string): Literal[] {
  const found: Literal[] = [];
  for (let at = 0; at < source.length; at++) {
    const quote = source[at];
    if (source.startsWith("//", at)) at = endOf(source, "\n", at);
    else if (source.startsWith("/*", at)) at = endOf(source, "*/", at) + 1;
    else if (quote === '"' || quote === "'") {
      const end = endOfString(source, at);
      found.push({ text: unescaped(source.slice(at + 1, end)), template: false });
      at = end;
    } else if (quote === "`") {
      const end = endOfTemplate(source, at);
      const names = opened.test(source.slice(Math.max(0, at - 40), at));
      if (names) found.push({ text: source.slice(at + 1, end), template: true });
      at = end;
    }
  }
  return found;
}

function endOf(source: string, mark: string, from: number): number {
  const end = source.indexOf(mark, from);
  return end === -1 ? source.length : end;
}

function endOfString(source: string, start: number): number {
  let at = start + 1;
  while (at < source.length && source[at] !== source[start] && source[at] !== "\n") at += source[at] === "\\" ? 2 : 1;
  return at;
}

/** Placeholders may contain strings and nested templates. */
function endOfTemplate(source: string, start: number): number {
  let depth = 0;
  for (let at = start + 1; at < source.length; at++) {
    if (source[at] === "\\") at++;
    else if (depth === 0 && source[at] === "`") return at;
    else if (source.startsWith("${", at)) {
      depth++;
      at++;
    } else if (depth > 0 && source[at] === "{") depth++;
    else if (depth > 0 && source[at] === "}") depth--;
    else if (depth > 0 && source[at] === "`") at = endOfTemplate(source, at);
  }
  return source.length;
}

function unescaped(text: string): string {
  return text.replaceAll(/\\(["'`\\])/g, "$1").replaceAll("\\n", "\n");
}

/** True when a name can come from a template: the fixed parts occur in order, the first one at the start and the last one at the end. */
export function matches(template: string, name: string): boolean {
  const parts = fixedParts(template);
  const first = parts[0]!;
  const last = parts.at(-1)!;
  if (parts.length === 1) return name === first;
  if (!name.startsWith(first) || !name.endsWith(last) || name.length < first.length + last.length) return false;
  let at = first.length;
  for (const part of parts.slice(1, -1)) {
    const found = name.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return at <= name.length - last.length;
}

function fixedParts(template: string): string[] {
  const parts: string[] = [];
  let part = "";
  for (let at = 0; at < template.length; at++) {
    if (template.startsWith("${", at)) {
      parts.push(unescaped(part));
      part = "";
      let depth = 1;
      at += 2;
      while (at < template.length && depth > 0) {
        if (template[at] === "{") depth++;
        if (template[at] === "}") depth--;
        if (template[at] === "`") at = endOfTemplate(template, at);
        if (depth > 0) at++;
      }
    } else if (template[at] === "\\") part += template[at]! + (template[++at] ?? "");
    else part += template[at];
  }
  return [...parts, unescaped(part)];
}
