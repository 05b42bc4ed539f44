import { dirname, join, normalize } from "node:path";
import type { SourceFile } from "./check.ts";

/**
 * Import cycles among the files, of types as well as of values: each strongly connected component of more than one file.
 * Imports by package name are not followed: packages depend on each other in one direction only.
 * @returns paths of each cycle, sorted; the components in the order of their first path
 */
export function importCycles(files: readonly SourceFile[]): string[][] {
  const known = new Set(files.map(({ path }) => path));
  const targets = new Map<string, string[]>();
  for (const { path, imports } of files) {
    const local = imports.filter((name) => name.startsWith(".")).map((name) => normalize(join(dirname(path), name)));
    targets.set(
      path,
      local.filter((target) => known.has(target)),
    );
  }
  return components(targets)
    .filter((component) => component.length > 1)
    .map((component) => component.sort())
    .sort((a, b) => (a[0]! < b[0]! ? -1 : 1));
}

/** Describes a cycle in one line, with the imports that form it. */
export function describeCycle(cycle: readonly string[], files: readonly SourceFile[]): string {
  const inside = new Set(cycle);
  const edges = files
    .filter(({ path }) => inside.has(path))
    .flatMap(({ path, imports }) =>
      imports
        .filter((name) => name.startsWith("."))
        .map((name) => normalize(join(dirname(path), name)))
        .filter((target) => inside.has(target) && target !== path)
        .map((target) => `  ${path} imports ${target}`),
    );
  return [`${cycle.length} files import each other in a cycle:`, ...new Set(edges)].join("\n");
}

/** Tarjan's algorithm for strongly connected components. */
function components(targets: ReadonlyMap<string, readonly string[]>): string[][] {
  const index = new Map<string, number>();
  const low = new Map<string, number>();
  const stack: string[] = [];
  const onStack = new Set<string>();
  const found: string[][] = [];
  const visit = (node: string): void => {
    const order = index.size;
    index.set(node, order);
    low.set(node, order);
    stack.push(node);
    onStack.add(node);
    for (const target of targets.get(node) ?? []) {
      if (!index.has(target)) {
        visit(target);
        low.set(node, Math.min(low.get(node)!, low.get(target)!));
      } else if (onStack.has(target)) low.set(node, Math.min(low.get(node)!, index.get(target)!));
    }
    if (low.get(node) !== order) return;
    const component = stack.splice(stack.indexOf(node));
    for (const member of component) onStack.delete(member);
    found.push(component);
  };
  for (const node of targets.keys()) if (!index.has(node)) visit(node);
  return found;
}
