/** Parses docs/compatibility.tsv: section, ID, requirement, state, proof. */

export interface Row {
  /** `R001`, or the name of a controller or plugin. */
  readonly id: string;
  readonly section: string;
  readonly state: string;
  readonly proofs: readonly Proof[];
  /** Rule whose state and proof also apply to this row. */
  readonly sameAs: string | undefined;
  readonly line: number;
}

/** Reference to a test that proves a row: `path/x.test.ts "test name"`. */
export interface Proof {
  /** Relative to the repository. */
  readonly file: string;
  readonly test: string;
}

/** All rows below the header line. */
export function rowsOf(table: string): Row[] {
  return table
    .trimEnd()
    .split("\n")
    .slice(1)
    .map((line, index) => {
      const [section = "", id = "", , state = "", proof = ""] = line.split("\t");
      const sameAs = /^[RQ]\d+$/.test(proof) ? proof : undefined;
      return { id, section, state, proofs: sameAs === undefined ? proofsOf(proof) : [], sameAs, line: index + 2 };
    });
}

function proofsOf(cell: string): Proof[] {
  if (cell === "") return [];
  // A name ends at a quote followed by another proof or the end, because names may contain quotes.
  return cell.split(/(?<="); (?=[\w./-]+\.ts ")/).map((proof) => {
    const start = proof.indexOf(" ");
    return {
      file: proof.slice(0, start),
      test: proof
        .slice(start + 1)
        .replace(/^"/, "")
        .replace(/"$/, ""),
    };
  });
}
