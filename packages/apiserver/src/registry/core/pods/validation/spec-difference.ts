/**
 * What differs between two shapes, one line for each value, for the text of a refused update. Upstream appends Go's
 * rendering of the structs here; clients show it and do not read it.
 */
export function specDifference(next: unknown, current: unknown): string {
  const lines: string[] = [];
  collect(next, current, "", lines);
  return lines.slice(0, mostLines).join("\n") + (lines.length > mostLines ? "\n\t..." : "");
}

const mostLines = 20;

function collect(next: unknown, current: unknown, path: string, lines: string[]): void {
  if (lines.length > mostLines) return;
  if (isObject(next) && isObject(current)) {
    for (const key of new Set([...Object.keys(current), ...Object.keys(next)])) {
      collect(own(next, key), own(current, key), path === "" ? key : `${path}.${key}`, lines);
    }
  } else if (Array.isArray(next) && Array.isArray(current)) {
    for (let i = 0; i < Math.max(next.length, current.length); i++) collect(next[i], current[i], `${path}[${i}]`, lines);
  } else if (JSON.stringify(next, bigints) !== JSON.stringify(current, bigints)) {
    lines.push(
      `\t- ${path}: ${JSON.stringify(next, bigints) ?? "nil"}`,
      `\t+ ${path}: ${JSON.stringify(current, bigints) ?? "nil"}`,
    );
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function own(object: Record<string, unknown>, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

function bigints(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? String(value) : value;
}
