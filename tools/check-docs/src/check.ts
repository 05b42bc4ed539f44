import { type Row, rowsOf } from "./compatibility.ts";
import { hasTest } from "./test-names.ts";

/** An entry of a catalogue that needs a row in the table, and whether it is implemented. */
export interface Known {
  readonly name: string;
  readonly built: boolean;
}

interface Expected {
  /** Names by table heading. */
  readonly sections: Readonly<Record<string, readonly Known[]>>;
  /** @returns undefined when the file does not exist */
  read(path: string): string | undefined;
}

export const ruleIds: readonly string[] = [
  ...Array.from({ length: 430 }, (_, index) => `R${String(index + 1).padStart(3, "0")}`),
  ...Array.from({ length: 25 }, (_, index) => `Q${index + 1}`),
];

/** @returns problems in docs/compatibility.tsv, each with its line, and rules that hold partly and are not on the page */
export function checkCompatibility(table: string, page: string, expected: Expected): string[] {
  const rows = rowsOf(table);
  return [
    ...rows.flatMap((row) => problemsOf(row, rows, expected)),
    ...rows
      .filter(({ id, state }) => ruleIds.includes(id) && state.startsWith("partly") && !page.includes(`| ${id} |`))
      .map(({ id, line }) => `docs/compatibility.tsv:${line}: ${id} holds partly, and docs/compatibility.md does not name it`),
    ...once(
      ruleIds,
      rows.filter(({ section }) => expected.sections[section] === undefined),
    ),
    ...Object.entries(expected.sections).flatMap(([section, known]) => checkSection(section, known, rows)),
  ];
}

function problemsOf({ id, state, proofs, sameAs, line }: Row, rows: readonly Row[], { read }: Expected): string[] {
  const at = `docs/compatibility.tsv:${line}: ${id}`;
  const problems: string[] = [];
  if (!/^(works|partly: .+|not yet)$/.test(state))
    problems.push(`${at}: the state is "works", "partly: what is missing" or "not yet"`);
  const other = rows.find((row) => row.id === sameAs);
  if (sameAs !== undefined && other?.state !== state)
    problems.push(`${at}: says "${state}", ${sameAs} says "${other?.state ?? "nothing"}"`);
  if (state === "works" && proofs.length === 0 && sameAs === undefined)
    problems.push(`${at}: works, but no test is named that shows it`);
  for (const { file, test } of proofs) {
    const source = read(file);
    if (source === undefined) problems.push(`${at}: there is no ${file}`);
    else if (!hasTest(source, test)) problems.push(`${at}: ${file} has no test "${test}"`);
  }
  return problems;
}

function once(ids: readonly string[], rows: readonly Row[]): string[] {
  const seen = new Map<string, number>();
  for (const { id } of rows) seen.set(id, (seen.get(id) ?? 0) + 1);
  const problems = ids
    .filter((id) => seen.get(id) !== 1)
    .map((id) => `docs/compatibility.tsv: ${id} is there ${seen.get(id) ?? 0} times`);
  const known = new Set(ids);
  return [
    ...problems,
    ...rows.filter(({ id }) => !known.has(id)).map(({ id, line }) => `docs/compatibility.tsv:${line}: there is no rule ${id}`),
  ];
}

function checkSection(section: string, known: readonly Known[], rows: readonly Row[]): string[] {
  const own = rows.filter((row) => row.section === section);
  const problems: string[] = [];
  for (const { name, built } of known) {
    const found = own.filter(({ id }) => id === name);
    if (found.length !== 1) problems.push(`docs/compatibility.tsv, ${section}: ${name} is there ${found.length} times`);
    for (const { state, line } of found) {
      if (built && state === "not yet") problems.push(`docs/compatibility.tsv:${line}: ${name} is built by now`);
      if (!built && state !== "not yet")
        problems.push(`docs/compatibility.tsv:${line}: ${name} is not built, its catalogue says`);
    }
  }
  const names = new Set(known.map(({ name }) => name));
  for (const { id, line } of own)
    if (!names.has(id)) problems.push(`docs/compatibility.tsv:${line}: the catalogue knows no ${id}`);
  return problems;
}

/** Reasons missing in docs/errors.md or listed with another code, and rows of unknown reasons. */
export function checkReasons(markdown: string, reasons: Readonly<Record<string, number>>): string[] {
  const rows = new Map([...markdown.matchAll(/^\| `(\w+)` \| (\d+) \|/gm)].map(([, reason, code]) => [reason!, Number(code)]));
  return [
    ...Object.entries(reasons)
      .filter(([reason, code]) => rows.get(reason) !== code)
      .map(([reason, code]) => `docs/errors.md: ${reason} with ${code} is missing`),
    ...[...rows.keys()]
      .filter((reason) => !Object.hasOwn(reasons, reason))
      .map((reason) => `docs/errors.md: ${reason} is no reason`),
  ];
}
