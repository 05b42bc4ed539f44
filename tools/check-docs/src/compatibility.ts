/** Parses docs/compatibility.md: tables with rows of the form `| id | what | state | proof |`. */

export interface Row {
  /** First cell: `R001`, or the name of a controller or plugin. */
  readonly id: string;
  /** The heading above the table. */
  readonly section: string;
  readonly state: string;
  readonly proofs: readonly Proof[];
  /** Rule whose state and proof also apply to this row. */
  readonly sameAs: string | undefined;
  readonly line: number;
}

/** Reference to a test that proves a row: `[label](../path/x.test.ts) "test name"`. */
export interface Proof {
  /** Relative to the repository. */
  readonly file: string;
  readonly test: string;
}

/** Rows of all tables with a column `state`. Cells may contain `\|`. */
export function rowsOf(markdown: string): Row[] {
  const rows: Row[] = [];
  let section = "";
  let stateColumn = -1;
  let isTable = false;
  for (const [index, line] of markdown.split("\n").entries()) {
    if (line.startsWith("#")) section = line.replace(/^#+ /, "");
    if (!line.startsWith("|")) {
      isTable = false;
      continue;
    }
    const cells = cellsOf(line);
    if (!isTable) {
      isTable = true;
      stateColumn = cells.indexOf("state");
      continue;
    }
    if (stateColumn === -1 || /^-+$/.test(cells[0] ?? "")) continue;
    const id = (cells[0] ?? "").replaceAll("`", "");
    const proof = cells.at(-1) ?? "";
    const sameAs = /^[RQ]\d+$/.test(proof) ? proof : undefined;
    rows.push({ id, section, state: cells[stateColumn] ?? "", proofs: proofsOf(proof), sameAs, line: index + 1 });
  }
  return rows;
}

function cellsOf(line: string): string[] {
  const inner = line.trim().slice(1, -1).replaceAll("\\|", "\u0000");
  return inner.split("|").map((cell) => cell.replaceAll("\u0000", "|").trim());
}

function proofsOf(cell: string): Proof[] {
  const proofs: Proof[] = [];
  let rest = cell;
  for (let start = rest.indexOf("]("); start !== -1; start = rest.indexOf("](")) {
    const end = rest.indexOf(")", start);
    const file = rest.slice(start + 2, end).replace(/^\.\.\//, "");
    // A name ends at a quote followed by another proof or the end, because names may contain quotes.
    const next = rest.indexOf('"; [', end);
    const text = rest.slice(end + 1, next === -1 ? undefined : next + 1).trim();
    proofs.push({ file, test: text.replace(/^"/, "").replace(/"$/, "") });
    rest = next === -1 ? "" : rest.slice(next + 3);
  }
  return proofs;
}
