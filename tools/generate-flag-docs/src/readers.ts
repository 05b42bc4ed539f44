import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { DocumentedProgram } from "./pages.ts";

const root = join(import.meta.dirname, "../../..");

/** What reads flags of every daemon, and what serves those that have a port of that kind. */
const everywhere = ["run-main.ts", "metrics.ts"].map((file) => `packages/apimachinery/src/flags/${file}`);
const componentServer = ["component-server.ts", "delegated/trust.ts"].map((file) => `packages/apimachinery/src/serving/${file}`);

const withComponentServer = ["scheduler", "controller-manager", "cluster-services"];

/**
 * Names of the flags that the code of a program reads: `flags["x"]`, `flags.x`, `pick("x", …)`, and one of several alike by
 * a template, where each part that varies is one word. A flag that is read and
 * not used is for a reviewer to find.
 */
export function flagsThatAreRead({ package: folder, program }: DocumentedProgram): Set<string> {
  const own = globSync(`packages/${folder}/src/**/*.ts`, { cwd: root }).filter(
    (file) => !file.endsWith(".test.ts") && !file.endsWith("/src/flags.ts") && !file.includes("/testing/"),
  );
  const shared = withComponentServer.includes(folder) ? [...everywhere, ...componentServer] : everywhere;
  const source = [...own, ...shared].map((file) => readFileSync(join(root, file), "utf8")).join("\n");
  const templates = [...source.matchAll(/flags\[`([^`]+)`\]/g)].map(
    ([, template = ""]) => new RegExp(`^${template.replaceAll(/\$\{\w+\}/g, "[a-z]+")}$`),
  );
  return new Set(
    Object.keys(program.flags.table).filter(
      (name) => mentions(source, name) || templates.some((template) => template.test(name)),
    ),
  );
}

function mentions(source: string, name: string): boolean {
  const places = [`flags["${name}"]`, `values["${name}"]`, `pick("${name}"`, `flags.${name}`];
  // A name with a dash is hardly anything else; a bare word is.
  if (name.includes("-")) places.push(`["${name}"`, `("${name}"`);
  return places.some((place) => source.includes(place));
}
