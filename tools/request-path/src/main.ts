import { parseArgs } from "node:util";
import { figuresOf, moduleOf } from "./figures.ts";
import { limits } from "./limits.ts";
import { measureAll } from "./measure.ts";

const help = `What one warmed request runs in the API server: files, modules and functions.

    node -C cox-source tools/request-path/src/main.ts [--returns] [--list <request>]

  --returns         also counts how often a create and a get come back to a file of the stages (handlers, admission, registry)
                    that they have left; takes a minute
  --list <request>  prints the functions of one request by module and file; part of its name suffices
  --help            prints this
`;

const { values } = parseArgs({
  options: { returns: { type: "boolean" }, list: { type: "string" }, help: { type: "boolean" } },
});
if (values.help) process.stdout.write(help);
else await run();

async function run(): Promise<void> {
  const paths = await measureAll(values.returns === true ? (name) => limits[name] : undefined);
  const row = (...cells: unknown[]): void =>
    console.log(cells.map((cell, at) => (at === 0 ? String(cell).padEnd(24) : String(cell ?? "").padStart(16))).join(""));
  row("request", "files (limit)", "modules (limit)", "functions", values.returns ? "returns" : "");
  for (const [name, { functions, returns }] of paths) {
    const { files, modules, functions: count } = figuresOf(functions);
    const limit = limits[name];
    row(name, `${files} (${limit?.files ?? "-"})`, `${modules} (${limit?.modules ?? "-"})`, count, returns);
  }
  for (const [name, { functions }] of paths) {
    if (values.list === undefined || !name.includes(values.list)) continue;
    console.log(`\n${name}`);
    const byFile = Map.groupBy(functions, ({ file }) => file);
    for (const [module, files] of [...Map.groupBy(byFile.keys(), moduleOf)].sort(([a], [b]) => (a < b ? -1 : 1))) {
      console.log(`  ${module}`);
      for (const file of files.sort()) {
        const names = (byFile.get(file) ?? []).map((one) => one.name || "-");
        console.log(`    ${file}: ${names.join(" ")}`);
      }
    }
  }
  process.exit(); // open connections of the client would keep the process alive
}
