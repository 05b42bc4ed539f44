import type { Node, SourceFile } from "typescript/unstable/ast";
import { isAsExpression, isStatement } from "typescript/unstable/ast/is";
import { fromSyntax, type SourceText } from "./parse.ts";

/** A type assertion, `as T`. */
interface Cast {
  readonly path: string;
  readonly line: number;
  /** Its first line. */
  readonly text: string;
}

/** Casts without a reason that each package and tool still holds. The numbers may only fall; what has none holds no such cast. */
export const mostCasts: Readonly<Record<string, number>> = {};

const isProgram = (path: string): boolean =>
  /^(?:packages\/(?!testing\/)|tools\/)[^/]+\/src\//.test(path) &&
  !/\.test\.tsx?$|\.generated\.|\/src\/(?:.*\/)?(?:testing\/|testing\.ts$|suite\.ts$|schema\/kinds\/)/.test(path);

/** In a comment on the lines of the cast, on the line before it, or before its statement. */
const reason = /\bcast: \S/i;

/**
 * Casts in the program code of packages and tools that no comment `cast: why` explains. `as const` is no cast.
 * @param sources may be of any files; tests and generated tables are left out
 */
export function unexplainedCasts(sources: readonly SourceText[]): Cast[] {
  const candidates = sources.filter(({ path, text }) => isProgram(path) && /\bas (?!const\b)/.test(text));
  return fromSyntax(candidates, castsOf);
}

/** One line for each cast of a package that holds more than it may. */
export function castProblems(casts: readonly Cast[], most = mostCasts): string[] {
  return [...Map.groupBy(casts, packageOf)].flatMap(([name, own]) => {
    const allowed = most[name] ?? 0;
    if (own.length <= allowed) return [];
    const lines = own.map(({ path, line, text }) => `${path}:${line}: a cast without a reason: ${text}`);
    return [
      ...(allowed === 0 ? lines : []),
      `${name} has ${own.length} casts without a comment "cast: why" (at most ${allowed})`,
    ];
  });
}

const packageOf = ({ path }: Cast): string => path.split("/")[1] ?? "";

function castsOf({ path, text }: SourceText, file: SourceFile): Cast[] {
  const lines = text.split("\n");
  const lineOf = (at: number): number => file.getLineAndCharacterOfPosition(at).line;
  const found: Cast[] = [];
  const visit = (node: Node): void => {
    if (isAsExpression(node) && node.type.getText(file) !== "const") {
      const [first, last] = [lineOf(node.getStart(file)), lineOf(node.end)];
      const near = [first, lineOf(node.type.getStart(file)), last, lineOf(statementOf(node).getStart(file))];
      if (!near.some((line) => isExplained(lines, line))) found.push({ path, line: first + 1, text: lines[first]?.trim() ?? "" });
    }
    node.forEachChild(visit);
  };
  visit(file);
  return found;
}

function statementOf(node: Node): Node {
  return isStatement(node) || node.parent === undefined ? node : statementOf(node.parent);
}

/** True when the line, or the comment that ends before it, says why. */
function isExplained(lines: readonly string[], line: number): boolean {
  const own = lines[line] ?? "";
  const comment = own.search(/\/\/|\/\*/);
  if (comment >= 0 && reason.test(own.slice(comment))) return true;
  for (let i = line - 1; /^\s*(?:\/\/|\/?\*)/.test(lines[i] ?? ""); i--) if (reason.test(lines[i] ?? "")) return true;
  return false;
}
