import type { Proof, Row } from "./compatibility.ts";
import { matches } from "./test-names.ts";

/**
 * Result of one test or suite; `file` is the file that was run, and `where` the `file:line` of the declaration, which may be in a shared suite; both are
 * relative to the repository. An empty name stands for all tests of a file that did not
 * run to completion.
 */
export interface Outcome {
  readonly name: string;
  readonly file: string;
  readonly where: string;
  readonly outcome: "passed" | "failed" | "skipped" | "todo";
}

/** Result of a row: the worst of its tests. `not run`: the run had no test that matches the row's proof. */
export type Mark = "passed" | "skipped" | "not run" | "failed";

const worstFirst: readonly Mark[] = ["failed", "not run", "skipped", "passed"];

/**
 * Pure: the mark of each row that names tests, by ID. A row that refers to another one has the same mark.
 * @param outcomes results of all tests of the run
 */
export function marksOf(rows: readonly Row[], outcomes: readonly Outcome[]): Map<string, Mark> {
  const byFile = Map.groupBy(outcomes, ({ file }) => file);
  const byPlace = Map.groupBy(outcomes, ({ where }) => where.replace(/:\d+$/, ""));
  const markOf = ({ proofs }: Row): Mark | undefined =>
    worstFirst.find((mark) =>
      proofs.some((proof) => markOfProof(proof, byFile.get(proof.file) ?? byPlace.get(proof.file) ?? []) === mark),
    );
  const own = new Map(rows.map((row) => [row.id, markOf(row)]));
  return new Map(
    rows.flatMap(({ id, sameAs }) => {
      const mark = own.get(sameAs ?? id);
      return mark === undefined ? [] : [[id, mark] as const];
    }),
  );
}

function markOfProof({ test }: Proof, outcomes: readonly Outcome[]): Mark {
  const exact = outcomes.filter(({ name }) => name === test);
  // A row may name all tests of a template (`refuses ${what}`), or a table entry that is only a part of the test's name.
  const isOf = ({ name }: Outcome): boolean => name === "" || (test.includes("${") ? matches(test, name) : name.includes(test));
  const found = exact.length > 0 ? exact : outcomes.filter(isOf);
  const marks = found.map(({ outcome }): Mark => (outcome === "todo" ? "skipped" : outcome));
  return worstFirst.find((mark) => marks.includes(mark)) ?? "not run";
}
