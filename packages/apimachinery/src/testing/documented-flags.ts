/** The flags that upstream documents, for the tests of each daemon's table. */
import { readFileSync } from "node:fs";
import type { Program } from "../flags/flags.ts";

/** Values that --help does not show as a default. */
const zeros = ["", "0", "0s", "false", "[]", "<nil>"];

/** @returns what differs from upstream's `--help`: missing flags and other defaults; hidden flags are not documented */
export function undocumentedDefaults({ name: program, flags }: Program): string[] {
  // Rows of program, flag and default: `-` for none, `?` for one that depends on the machine, `a;b` for either.
  const rows = readFileSync(new URL("../../../../e2e/golden/flags.tsv", import.meta.url), "utf8")
    .trim()
    .split("\n")
    .map((line) => line.split("\t"))
    .filter(([of]) => of === program);
  if (rows.length === 0) return [`no flags of ${program} are documented`];
  return rows.flatMap(([, option = "", shown = ""]) => {
    const flag = flags.table[option.replace(/^--/, "")];
    if (flag === undefined) return ["--help", "--version"].includes(option) ? [] : [`${option} is missing`];
    const text = flag.defaultText ?? flag.format(flag.default);
    const own = zeros.includes(text) ? "-" : text.replace(/^\[(.*)\]$/, "$1");
    const wanted = shown.split(";");
    return wanted.includes("?") || wanted.includes(own) ? [] : [`${option}: ${own} in place of ${wanted.join(" or ")}`];
  });
}
