import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, extname, join } from "node:path";
import { parseArgs } from "node:util";
import { convert, extensions, type Format, formats } from "./convert.ts";

const usage =
  "usage: convert --to json|yaml|protobuf [--api-version group/version] [--out-dir folder file…] (else from stdin to stdout)";

function main(): number {
  const { values, positionals } = parseArgs({
    options: { to: { type: "string" }, "api-version": { type: "string" }, "out-dir": { type: "string" } },
    allowPositionals: true,
  });
  const to = values.to;
  if (to === undefined || !Object.hasOwn(formats, to)) {
    console.error(usage);
    return 2;
  }
  const format = to as Format;
  const inputs = positionals.length === 0 ? ["/dev/stdin"] : positionals;
  let failed = 0;
  for (const file of inputs) {
    try {
      const output = convert(readFileSync(file), format, values["api-version"]);
      writeOutput(file, output, format, values["out-dir"]);
    } catch (err) {
      console.error(`${file}: ${(err as Error).message}`);
      failed++;
    }
  }
  return failed === 0 ? 0 : 1;
}

function writeOutput(file: string, output: Buffer, format: Format, folder: string | undefined): void {
  if (folder === undefined) {
    writeFileSync("/dev/stdout", output);
    return;
  }
  mkdirSync(folder, { recursive: true });
  const stem = file === "/dev/stdin" ? "object" : basename(file, extname(file));
  writeFileSync(join(folder, `${stem}.${extensions[format]}`), output);
}

process.exitCode = main();
