import type { Source } from "./exports.ts";

/** Longer sources have to be split, except tables of data; tests may be longer. */
export const mostFileLines = 600;

/** Generated tables, exempt from the limit of lines. */
const exempt = ["packages/apimachinery/src/objects/schema/kinds/"];

/** A function called `is…` whose declared result is not a boolean. */
const notBoolean =
  /^\s*(?:export )?(?:async )?(?:function|const) (is[A-Z]\w*)\b[^\n{]*\): (?:readonly )?(?!boolean|Promise<boolean|asserts|\w+ is )([\w.]+(?:\[\])?)/gm;
const suppression =
  /\/[/*] *(?:biome-ignore [^\s:]+|oxlint-disable[\w-]*(?: [\w/,-]+)?|@ts-(?:ignore|expect-error))[ \t]*(.*)$/gm;

/** Imports of values from `node:http`, which programs in `packages` must not load (it loads undici); type imports are erased. */
const importOfHttp = /^import (?!type )(?:\{(?!(?:\s*type \w+,?)+\s*\})[^}]*\}|[\w*][^"{]*) from "node:http";/gm;

/** A wait for the next event-loop iteration by hand; long work yields by `Turns`, the rest by `nextIteration`. */
const ownYield = /new Promise(?:<\w+>)?\((?:setImmediate|\(?\w+\)? => (?:void )?setImmediate\(\w+\))\)/g;

/**
 * Conventions that no linter has a rule for: short files, `is…` returns a boolean, each suppression of a lint rule says why, no
 * daemon loads undici, one way to yield.
 * @returns one line for each violation
 */
export function conventionProblems(sources: readonly Source[]): string[] {
  return sources.flatMap(({ path, text }) => [
    ...tooLong(path, text),
    ...[...text.matchAll(notBoolean)].map(
      ([, name, type]) => `${path}: ${name} returns ${type}; a function called is… returns a boolean`,
    ),
    ...[...text.matchAll(suppression)].flatMap(([whole, reason = ""]) =>
      /\w{3}/.test(reason) ? [] : [`${path}: ${whole.trim()} has no reason`],
    ),
    ...(isStarted(path) && !path.includes("/process/event-loop/") ? [...text.matchAll(ownYield)] : []).map(
      () => `${path}: yields by setImmediate; long work yields by Turns, of apimachinery's process/event-loop`,
    ),
    ...(isStarted(path) ? [...text.matchAll(importOfHttp)] : []).map(
      () => `${path}: imports node:http, which loads undici; take it from apimachinery's transport/node-http.ts`,
    ),
  ]);
}

const isStarted = (path: string): boolean =>
  /^packages\/(?:apimachinery|apiserver|cluster-services|controller-manager|node-agent|scheduler|testing)\/src\//.test(path) &&
  !/\.test\.ts$|\/src\/(?:.*\/)?testing(?:\/|\.ts$)/.test(path);

function tooLong(path: string, text: string): string[] {
  const lines = text.split("\n").length - 1;
  if (lines <= mostFileLines || path.endsWith(".test.ts") || exempt.some((prefix) => path.startsWith(prefix))) return [];
  return [`${path} has ${lines} lines (at most ${mostFileLines})`];
}
