import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { writeChecksums } from "./checksums.ts";
import { writeImage } from "./image.ts";
import { writeRelease } from "./release.ts";

/**
 * `main.ts [--release] [--image [--name <reference>]…] [--out <folder>]`: writes the release archive and the image to a folder,
 * `.cox/release` by default, with `SHA256SUMS`, and prints the paths. `--name` adds references to the image.
 */
const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..");

interface Options {
  readonly release: boolean;
  readonly image: boolean;
  readonly name: readonly string[];
  readonly out: string;
}

function readOptions(): Options {
  try {
    return parseArgs({
      options: {
        release: { type: "boolean", default: false },
        image: { type: "boolean", default: false },
        name: { type: "string", multiple: true, default: [] },
        out: { type: "string", default: join(root, ".cox", "release") },
      },
    }).values;
  } catch (err) {
    const [reason] = messageOf(err).split(". ");
    console.error(`cox: ${reason}; see ./cox build --help`);
    process.exit(2);
  }
}

const options = readOptions();
const out = resolve(options.out);
const written: string[] = [];
if (options.release) written.push(await writeRelease(root, out));
if (options.image) written.push(await writeImage(root, out, options.name));
if (written.length > 0) written.push(writeChecksums(written));
for (const path of written) console.log(path);
