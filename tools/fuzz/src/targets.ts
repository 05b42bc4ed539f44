import { readdirSync } from "node:fs";
import type { Target } from "./target.ts";

const folder = new URL("./targets/", import.meta.url);

/** The files of `targets/`, each with the targets of one module. */
const modules: readonly string[] = readdirSync(folder)
  .filter((file) => file.endsWith(".ts"))
  .map((file) => file.slice(0, -".ts".length))
  .sort();

/** Targets of a module by full name: `codec/json`. */
async function targetsOf(module: string): Promise<Map<string, Target>> {
  const { targets } = (await import(new URL(`${module}.ts`, folder).href)) as { targets: readonly Target[] }; // cast: each module of the folder exports it
  return new Map(targets.map((target) => [`${module}/${target.name}`, target]));
}

/** Loads the code of the target's module. */
export async function targetOf(name: string): Promise<Target> {
  const target = (await targetsOf(name.split("/", 1)[0]!)).get(name);
  if (target === undefined) throw new Error(`there is no target ${name}`);
  return target;
}

export async function targetNames(): Promise<string[]> {
  const names: string[] = [];
  for (const module of modules) names.push(...(await targetsOf(module)).keys());
  return names;
}
