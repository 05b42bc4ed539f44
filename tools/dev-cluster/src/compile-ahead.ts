import { execFile } from "node:child_process";
import { existsSync, globSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { compiledCodeFolder } from "@coxswain/apimachinery/flags/quick-imports";

/** File in the cache folder that identifies the build. */
const markFile = "made-of";

/**
 * `compile-ahead.ts`: fills V8's compile cache of each daemon after a build, so that no start has to compile. Runs each daemon
 * with --help, which loads all modules, under NODE_COMPILE_CACHE.
 * @param root the repository
 * @returns dist folders of the daemons whose cache was renewed; the others are up to date
 */
export async function compileAhead(root: string): Promise<string[]> {
  const builds = globSync("packages/*/dist/.tsbuildinfo", { cwd: root }).sort();
  const mark = [process.version, ...builds.map((file) => `${file} ${statSync(join(root, file)).mtimeMs}`), ""].join("\n");
  const all = globSync("packages/*/dist/main.js", { cwd: root }).map((file) => join(root, file, ".."));
  const stale = all.filter((dist) => !isOf(mark, join(dist, compiledCodeFolder)));
  await Promise.all(stale.map((dist) => compile(dist, mark)));
  return stale;
}

function isOf(mark: string, folder: string): boolean {
  const file = join(folder, markFile);
  return existsSync(file) && readFileSync(file, "utf8") === mark;
}

/** Writes to a temporary folder and renames it, because a daemon may be starting concurrently. */
async function compile(dist: string, mark: string): Promise<void> {
  const folder = join(dist, compiledCodeFolder);
  const made = `${folder}.${process.pid}`;
  const env = { ...process.env, NODE_COMPILE_CACHE: made, NODE_COMPILE_CACHE_PORTABLE: "0", NODE_COMPILE_CACHE_READONLY: "0" };
  try {
    await promisify(execFile)(process.execPath, [join(dist, "main.js"), "--help"], { env });
    writeFileSync(join(made, markFile), mark);
    rmSync(folder, { recursive: true, force: true });
    renameSync(made, folder);
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
}

if (import.meta.main) await compileAhead(join(import.meta.dirname, "..", "..", ".."));
