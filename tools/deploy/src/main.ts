import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { writeImage } from "./image.ts";
import { writeRelease } from "./release.ts";

/**
 * `main.ts [--release] [--image [--name <reference>]…] [--out <folder>]`: writes the two into the folder, `.cox/release` by default,
 * and prints their paths. The image gets the names too.
 */
const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..");
const { values } = parseArgs({
  options: {
    release: { type: "boolean", default: false },
    image: { type: "boolean", default: false },
    name: { type: "string", multiple: true, default: [] },
    out: { type: "string", default: join(root, ".cox", "release") },
  },
});
const out = resolve(values.out);
if (values.release) console.log(await writeRelease(root, out));
if (values.image) console.log(await writeImage(root, out, values.name));
