import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { publishedPackages } from "./packages.ts";
import { writePackage } from "./write-package.ts";

export const run = promisify(execFile);
export const root = join(import.meta.dirname, "../../..");

/** Creates an empty project below `scratch` with packed packages installed, without a registry. @returns its folder */
export async function projectWith(scratch: string, folders: readonly string[]): Promise<string> {
  const user = join(scratch, "user");
  mkdirSync(user);
  writeFileSync(join(user, "package.json"), '{ "type": "module", "private": true }');
  const packed = [];
  for (const made of await writePackages(folders, scratch)) {
    packed.push((await run("npm", ["pack", "--silent", `--pack-destination=${user}`], { cwd: made })).stdout.trim());
  }
  await run("npm", ["install", "--offline", "--no-audit", "--no-fund", ...packed.map((file) => `./${file}`)], { cwd: user });
  return user;
}

/** Writes packages as published, each into a folder with its name. @returns these folders */
export async function writePackages(folders: readonly string[], out: string): Promise<string[]> {
  const projects = folders.map((folder) => join(root, "packages", folder));
  // Compiles the projects, because the published types are the compiler's declarations.
  await run(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "--build", ...projects]);
  const made = publishedPackages.filter(({ folder }) => folders.includes(folder));
  for (const published of made) await writePackage(root, published, join(out, published.folder));
  return made.map(({ folder }) => join(out, folder));
}

/** Compiles files of such a project. @throws Error with the compiler's output */
export async function checkTypes(project: string, ...filesAndFlags: string[]): Promise<void> {
  const flags = ["--noEmit", "--strict", "--module", "nodenext", "--target", "es2024", "--lib", "es2024,esnext.disposable,dom"];
  const types = ["--types", "node", "--typeRoots", join(root, "tools/publish/node_modules/@types")];
  await run(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), ...flags, ...types, ...filesAndFlags], {
    cwd: project,
  });
}
