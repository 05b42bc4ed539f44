import { rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { publishedPackages } from "./packages.ts";
import { writePackage } from "./write-package.ts";

const help = `Writes the packages as they are published, each into a folder that \`npm publish\` takes. Compile first: ./cox build.

Usage: node -C cox-source tools/publish/src/main.ts [--out DIR] [package…]

  --out DIR   default .cox/packages; folders of the packages in it are replaced
  package     ${publishedPackages.map(({ folder }) => folder).join(", ")}; default all
  --help      prints this
`;

process.exitCode = await run(process.argv.slice(2));

/** @returns the exit code */
async function run(args: string[]): Promise<number> {
  const root = join(import.meta.dirname, "../../..");
  try {
    const options = { out: { type: "string" }, help: { type: "boolean", short: "h" } } as const;
    const { values, positionals } = parseArgs({ args, options, allowPositionals: true });
    if (values.help) {
      process.stdout.write(help);
      return 0;
    }
    const unknown = positionals.find((name) => !publishedPackages.some(({ folder }) => folder === name));
    if (unknown !== undefined) throw new Error(`there is no published package ${JSON.stringify(unknown)}`);
    for (const published of publishedPackages) {
      if (positionals.length > 0 && !positionals.includes(published.folder)) continue;
      const folder = join(values.out ?? join(root, ".cox/packages"), published.folder);
      rmSync(folder, { recursive: true, force: true });
      await writePackage(root, published, folder);
      process.stdout.write(`${folder}\n`);
    }
    return 0;
  } catch (err) {
    process.stderr.write(`${messageOf(err)}\nSee --help.\n`);
    return 2;
  }
}
