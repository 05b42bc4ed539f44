/** Text of the differences between two versions of an object. */
const mostLines = 12;
const longestValue = 120;
/** Fields that every write changes and that the history shows elsewhere. */
const unsaid = new Set(["metadata.managedFields", "metadata.resourceVersion", "metadata.generation"]);

/** `status.phase: "Pending" → "Running"`, in field order. */
export function changesBetween(before: unknown, after: unknown): readonly string[] {
  const lines: string[] = [];
  compare("", before, after, lines);
  if (lines.length <= mostLines) return lines;
  return [...lines.slice(0, mostLines), `… and ${lines.length - mostLines} more`];
}

function compare(path: string, before: unknown, after: unknown, lines: string[]): void {
  if (unsaid.has(path)) return;
  if (isObject(before) && isObject(after)) {
    for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
      compare(path === "" ? name : `${path}.${name}`, before[name], after[name], lines);
    }
    return;
  }
  if (Array.isArray(before) && Array.isArray(after)) {
    const idOf = identity([...before, ...after]);
    const older = new Map(before.map((item, index) => [idOf(item, index), item]));
    const newer = new Map(after.map((item, index) => [idOf(item, index), item]));
    for (const id of new Set([...older.keys(), ...newer.keys()])) compare(`${path}[${id}]`, older.get(id), newer.get(id), lines);
    return;
  }
  if (JSON.stringify(before) === JSON.stringify(after)) return;
  lines.push(`${path}: ${shown(before)} → ${shown(after)}`);
}

/** Items of object lists are matched by the field that identifies them. */
function identity(items: readonly unknown[]): (item: unknown, index: number) => string {
  for (const field of ["type", "name", "uid", "key", "ip"]) {
    if (items.length > 0 && items.every((item) => isObject(item) && typeof item[field] === "string")) {
      return (item) => String((item as Record<string, unknown>)[field]);
    }
  }
  return (_, index) => String(index);
}

function shown(value: unknown): string {
  if (value === undefined) return "absent";
  const text = JSON.stringify(value);
  return text.length > longestValue ? `${text.slice(0, longestValue)}…` : text;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
