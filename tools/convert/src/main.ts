import { readFileSync, writeFileSync } from "node:fs";
import { basename, extname, join } from "node:path";
import { parseArgs } from "node:util";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { type GroupVersion, parseGroupVersion } from "@coxswain/apimachinery/objects/meta/group-version";
import { makeFolderSync } from "@coxswain/apimachinery/process/files/make-folder";
import { type Converted, convert, type Format, formats } from "./convert.ts";

const usage = `usage: convert [--to json|yaml|protobuf] [--api-version GROUP/VERSION] [--out-dir FOLDER] [FILE…]

Objects in another encoding, and in another version of their kind. Reads standard input without a FILE, and JSON, YAML,
protobuf or a value of etcd, whichever it is. Writes to standard output (JSON unless --to says otherwise) or, with
--out-dir, a file of the same name that ends in .json, .yaml or .pb (all three unless --to says which).`;

interface Options {
  readonly to: readonly Format[];
  readonly version: GroupVersion | undefined;
  readonly folder: string | undefined;
  readonly files: readonly string[];
}

/** Exit codes: 0 all files converted, 1 some failed, 2 invalid command line. */
async function main(args: readonly string[]): Promise<number> {
  if (args.includes("--help") || args.includes("-h")) {
    console.log(usage);
    return 0;
  }
  let options: Options;
  try {
    options = readOptions([...args]);
  } catch (err) {
    console.error(`convert: ${messageOf(err)}\n\n${usage}`);
    return 2;
  }
  let failed = false;
  for (const file of options.files.length === 0 ? [undefined] : options.files) {
    try {
      await convertFile(file, options);
    } catch (err) {
      console.error(`${nameOf(file)}: ${messageOf(err)}`);
      failed = true;
    }
  }
  return failed ? 1 : 0;
}

/** @throws Error for invalid options. */
function readOptions(args: string[]): Options {
  const { values, positionals } = parseArgs({
    args,
    options: { to: { type: "string" }, "api-version": { type: "string" }, "out-dir": { type: "string" } },
    allowPositionals: true,
  });
  const { to, "api-version": apiVersion, "out-dir": folder } = values;
  if (to !== undefined && !Object.hasOwn(formats, to)) {
    throw new Error(`--to is one of ${Object.keys(formats).join(", ")}, not ${JSON.stringify(to)}`);
  }
  const version = apiVersion === undefined ? undefined : parseGroupVersion(apiVersion);
  if (apiVersion !== undefined && !version?.version) {
    throw new Error(`--api-version is GROUP/VERSION, or v1 for the core group, not ${JSON.stringify(apiVersion)}`);
  }
  if (folder === undefined && positionals.length > 1) throw new Error("more than one file needs --out-dir");
  const all = Object.keys(formats) as Format[]; // cast: Object.keys forgets the keys' type
  return { to: to !== undefined ? [to as Format] : folder === undefined ? ["json"] : all, version, folder, files: positionals }; // cast: checked above
}

async function convertFile(file: string | undefined, { to, version, folder }: Options): Promise<void> {
  const input = readFileSync(file ?? 0);
  const outputs: [Format, Converted][] = [];
  // Convert to all formats before writing, so that a failure leaves no partial output.
  for (const format of to) outputs.push([format, await convert(input, format, version)]);
  for (const warning of outputs[0]?.[1].warnings ?? []) console.error(`${nameOf(file)}: warning: ${warning}`);
  for (const [format, { bytes }] of outputs) {
    if (folder === undefined) {
      process.stdout.write(bytes);
      continue;
    }
    makeFolderSync(folder);
    const stem = file === undefined ? "object" : basename(file, extname(file));
    writeFileSync(join(folder, `${stem}.${formats[format].extension}`), bytes);
  }
}

function nameOf(file: string | undefined): string {
  return file ?? "standard input";
}

process.exitCode = await main(process.argv.slice(2));
