import { dirname, join, normalize } from "node:path";
import { apiserverModules, type Module, type OrderedModule, orderedModules, packages } from "./rules.ts";

/** One source file: its path from the repository's root and what it imports. */
export interface SourceFile {
  readonly path: string;
  readonly imports: readonly string[];
}

/** Module specifiers of all static and dynamic imports and re-exports. */
export function importsOf(text: string): string[] {
  const pattern = /(?:^|[\n;])\s*(?:import|export)\s(?:[^;"']*?\sfrom\s)?\s*["']([^"']+)["']|\bimport\(\s*["']([^"']+)["']\s*\)/g;
  return [...text.matchAll(pattern)].map((match) => (match[1] ?? match[2])!);
}

/** @returns one line for each import that the plan does not allow */
export function check(files: readonly SourceFile[]): string[] {
  return files.flatMap((file) => file.imports.flatMap((target) => problem(file.path, target) ?? []));
}

function problem(file: string, target: string): string | undefined {
  const match = /^(packages|tools)\/([^/]+)\/src\/(.+)$/.exec(file);
  if (match === null) return undefined;
  const [, place, own = "", path = ""] = match;
  const foreign = /^@coxswain\/([^/]+)/.exec(target)?.[1];
  if (foreign !== undefined) {
    if (place === "tools") return undefined;
    const allowed = packages[own] ?? [];
    return allowed.includes(foreign)
      ? undefined
      : `${file}: ${own} may import ${allowed.length === 0 ? "no other package" : `only ${allowed.join(", ")}`}, not ${target}`;
  }
  if (!target.startsWith(".") || isTest(path)) return undefined;
  const resolved = normalize(join(dirname(path), target));
  if (resolved.startsWith("..")) return `${file}: ${target} leaves the package; import it by its name`;
  if (isTest(resolved)) return `${file}: ${target} is a test`;
  if (/^[^/]+\.json$/.test(resolved)) return undefined; // data of the whole package, such as its metrics
  if (own === "apiserver") return graphProblem(file, path, resolved, apiserverModules);
  const modules = orderedModules[own];
  if (modules === undefined && place === "tools") return undefined;
  return modules === undefined ? `${file}: package ${own} has no module plan` : orderProblem(file, path, resolved, modules);
}

const isTest = (path: string): boolean => /\.test\.ts$|(?:^|\/)(?:suite|testing)\.ts$/.test(path);

function orderProblem(file: string, path: string, resolved: string, modules: readonly OrderedModule[]): string | undefined {
  const names = modules.map(({ name }) => name);
  const rankOf = (of: string): number => names.findIndex((name) => isBelow(of, name));
  const rank = rankOf(path);
  const otherRank = rankOf(resolved);
  if (rank < 0) return `${file}: is in no module of its package; modules: ${names.join(", ")}`;
  if (otherRank >= 0 && otherRank <= rank) return undefined;
  return `${file}: ${names[rank]} may import ${names.slice(0, rank).join(", ") || "no other module"}, not ${resolved}`;
}

function graphProblem(file: string, path: string, resolved: string, modules: readonly Module[]): string | undefined {
  const candidates = modules.filter((candidate) => isBelow(path, candidate.path));
  const module = candidates.sort((a, b) => b.path.length - a.path.length)[0];
  if (module === undefined) return `${file}: belongs to no module; modules: ${modules.map((one) => one.path).join(", ")}`;
  const { imports } = module;
  if (imports.includes("*") || [module.path, ...imports].some((allowed) => isBelow(resolved, allowed))) return undefined;
  return `${file}: ${module.path} may import ${imports.join(", ") || "no other module"}, not ${resolved}`;
}

const isBelow = (path: string, module: string): boolean => path === module || path.startsWith(`${module}/`);
