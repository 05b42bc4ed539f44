import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { writeRelease } from "./release.ts";

/** `main.ts --release [--out <folder>]`: writes what its flags name into the folder, `.cox/release` by default, and prints the files. */
const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..");
const { values } = parseArgs({
  options: {
    release: { type: "boolean", default: false },
    out: { type: "string", default: join(root, ".cox", "release") },
  },
});
const out = resolve(values.out);
if (values.release) console.log(await writeRelease(root, out));
