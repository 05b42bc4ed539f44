import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** File that identifies the sources from which the page was built. */
const markFile = ".made-of";

/**
 * `main.ts`: builds the API server's page into `packages/ui/dist/assets`, from which a server that runs from this clone
 * serves it. Does nothing when it is up to date.
 */
async function buildUi(root: string): Promise<"built" | "up to date"> {
  const sources = globSync(
    "{packages/ui/src/**/*,packages/apimachinery/src/objects/meta/*,tools/build-ui/src/*,pnpm-lock.yaml}",
    {
      cwd: root,
    },
  );
  const mark = sources
    .sort()
    .map((file) => `${file} ${statSync(join(root, file)).mtimeMs}\n`)
    .join("");
  const folder = join(root, "packages", "ui", "dist", "assets");
  if (existsSync(join(folder, markFile)) && readFileSync(join(folder, markFile), "utf8") === mark) return "up to date";
  const { uiAssets } = await import("./assets.ts"); // loads the bundler, only when it is needed
  const { files } = await uiAssets(root);
  mkdirSync(join(folder, ".."), { recursive: true });
  // Built beside the folder and then renamed, so that a running server never serves a partial build.
  const made = mkdtempSync(`${folder}-`);
  try {
    for (const [name, content] of files) writeFileSync(join(made, name), content);
    writeFileSync(join(made, markFile), mark);
    rmSync(folder, { recursive: true, force: true });
    renameSync(made, folder);
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
  return "built";
}

if (import.meta.main) await buildUi(join(import.meta.dirname, "..", "..", ".."));
