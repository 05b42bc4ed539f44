import { execFile } from "node:child_process";
import { existsSync, globSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { compiledCodeFolder } from "@coxswain/apimachinery/flags/quick-imports";

/** Which build the compiled code is of, in its folder. */
const markFile = "made-of";

/**
 * `compile-ahead.ts`: after each build, the code of the daemons' modules as V8 compiles it, so that no start has to. Done by Node
 * itself, while a daemon says its version: all modules are loaded for that.
 * @param root the repository
 * @returns the daemons whose code was compiled, by their package; the others have not changed
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

/** In a folder of its own until it is whole: a daemon may be starting. */
async function compile(dist: string, mark: string): Promise<void> {
  const folder = join(dist, compiledCodeFolder);
  const made = `${folder}.${process.pid}`;
  const env = { ...process.env, NODE_COMPILE_CACHE: made, NODE_COMPILE_CACHE_PORTABLE: "0", NODE_COMPILE_CACHE_READONLY: "0" };
  try {
    await promisify(execFile)(process.execPath, [join(dist, "main.js"), "--version"], { env });
    writeFileSync(join(made, markFile), mark);
    rmSync(folder, { recursive: true, force: true });
    renameSync(made, folder);
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
}

if (import.meta.main) await compileAhead(join(import.meta.dirname, "..", "..", ".."));
