import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Flag } from "@coxswain/apimachinery/flags/types";
import type { DocumentedProgram } from "./pages.ts";

const root = join(import.meta.dirname, "../../..");

/** Shared code that reads flags: of every daemon, and below of those with a component server. */
const everywhere = ["run-main.ts", "metrics.ts"].map((file) => `packages/apimachinery/src/flags/${file}`);
const leaderElection = "packages/apimachinery/src/controller/leader-election.ts";
const componentServer = ["component-server.ts", "delegated/trust.ts"].map((file) => `packages/apimachinery/src/serving/${file}`);

const withComponentServer = ["scheduler", "controller-manager", "cluster-services"];

/**
 * Names of the flags that a program's code reads: `flags["x"]`, `flags.x`, or a template for several similar names,
 * where each placeholder is one word. For a table of settings: those whose name occurs in the code outside of the
 * table. Whether a flag that is read has an effect is not checked.
 */
export function flagsThatAreRead({ package: folder, program, settings = [] }: DocumentedProgram): Set<string> {
  const own = globSync(`packages/${folder}/src/**/*.ts`, { cwd: root }).filter(
    (file) => !file.endsWith(".test.ts") && !/\/src\/flags(\.ts$|\/)|\/src\/settings(\.ts$|\/)|\/testing\//.test(file),
  );
  const shared = withComponentServer.includes(folder) ? [...everywhere, ...componentServer, leaderElection] : everywhere;
  const source = [...own, ...shared].map((file) => readFileSync(join(root, file), "utf8")).join("\n");
  const templates = [...source.matchAll(/flags\[`([^`]+)`\]/g)].map(
    ([, template = ""]) => new RegExp(`^${template.replaceAll(/\$\{\w+\}/g, "[a-z]+")}$`),
  );
  const words = new Set(source.match(/\w+/g));
  const bySetting = settings
    .flatMap(Object.entries<Flag<unknown>>)
    .flatMap(([name, { flag }]) => (flag !== undefined && words.has(name) ? [flag] : []));
  const byFlag = Object.keys(program.flags.table).filter(
    (name) => mentions(source, name) || templates.some((template) => template.test(name)),
  );
  return new Set([...bySetting, ...byFlag]);
}

function mentions(source: string, name: string): boolean {
  const places = [`flags["${name}"]`, `values["${name}"]`, `flags.${name}`];
  // A name with a dash is hardly used for anything else; a single word may be.
  if (name.includes("-")) places.push(`["${name}"`, `("${name}"`);
  return places.some((place) => source.includes(place));
}
