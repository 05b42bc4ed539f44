/** Parses the search field: words that must all occur; `ns:`, `node:`, `kind:` and `is:` restrict one field. */
import { isEvent, isPod, isWorkload, kindNames, type Row } from "./row.ts";

type Test = (row: Row) => boolean;

const fields = new Map<string, (value: string) => Test>(
  Object.entries({
    ns: (value: string) => (row: Row) => row.namespace === value,
    node: (value: string) => (row: Row) => isPod(row) && row.node === value,
    kind: (value: string) => (row: Row) =>
      kindNames[row.resource].toLowerCase() === value || row.resource.split(".")[0] === value,
    is: (value: string) => (row: Row) => row.health === value || row.status.toLowerCase() === value,
  }),
);

/** @returns undefined when everything matches */
export function parseQuery(text: string): Test | undefined {
  const tests = text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "")
    .map((word): Test => {
      const [, field = "", value = ""] = /^(\w+):(.+)$/.exec(word) ?? [];
      return fields.get(field)?.(value) ?? ((row) => contains(row, word));
    });
  if (tests.length === 0) return undefined;
  return (row) => tests.every((test) => test(row));
}

function contains(row: Row, word: string): boolean {
  if (row.name.includes(word) || row.namespace.includes(word) || row.status.toLowerCase().includes(word)) return true;
  if (isPod(row)) return row.node.includes(word);
  if (isWorkload(row)) return row.images.toLowerCase().includes(word);
  if (!isEvent(row)) return false;
  return [row.reason, row.message, row.aboutKind, row.aboutName].some((one) => one.toLowerCase().includes(word));
}
