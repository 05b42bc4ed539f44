import { readFileSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { rowsOf } from "./compatibility.ts";
import { marksOf, type Outcome } from "./marks.ts";

/**
 * `mark-proofs.ts <outcomes>`: writes `.cox/compatibility.tsv`, a copy of docs/compatibility.tsv with a column of results, and
 * prints how many rows passed. The outcomes are JSON lines. Exit code 1 when tests of a row failed or did not run; skipped tests are listed.
 */
const root = resolve(import.meta.dirname, "..", "..", "..");
const [outcomesFile = ""] = process.argv.slice(2);
const outcomes = readFileSync(outcomesFile, "utf8")
  .split("\n")
  .filter((line) => line !== "")
  .map((line) => JSON.parse(line) as Outcome); // cast: lines of run-tests
const table = readFileSync(join(root, "docs", "compatibility.tsv"), "utf8");
const rows = rowsOf(table);
const marks = marksOf(rows, outcomes);

const [head = "", ...lines] = table.trimEnd().split("\n");
const marked = join(root, ".cox", "compatibility.tsv");
writeFileSync(
  marked,
  [`${head}\tlast run`, ...lines.map((line, at) => `${line}\t${marks.get(rows[at]?.id ?? "") ?? ""}`), ""].join("\n"),
);

const counts = Object.entries(Object.groupBy(marks.values(), (mark) => mark)).map(([mark, all]) => `${all.length} ${mark}`);
console.log(`rows of docs/compatibility.tsv: ${counts.join(", ")}; in ${relative(root, marked)}`);
for (const [id, mark] of marks) if (mark !== "passed") console.log(`  ${id}: ${mark}`);
process.exitCode = [...marks.values()].some((mark) => mark === "failed" || mark === "not run") ? 1 : 0;
