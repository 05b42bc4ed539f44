import type { Node, SourceFile } from "typescript/unstable/ast";
import {
  isArrowFunction,
  isAsExpression,
  isBlock,
  isConstructorDeclaration,
  isFunctionDeclaration,
  isFunctionExpression,
  isGetAccessorDeclaration,
  isIdentifier,
  isMethodDeclaration,
  isObjectLiteralExpression,
  isParenthesizedExpression,
  isPropertyAssignment,
  isReturnStatement,
  isSatisfiesExpression,
  isShorthandPropertyAssignment,
  isVariableDeclaration,
} from "typescript/unstable/ast/is";
import { fromSyntax, type SourceText } from "./parse.ts";

/** A function that returns an object with methods: its local variables act as fields without a declared type. */
interface Closure {
  readonly path: string;
  /** The name of the function, or of the variable or property that holds it. */
  readonly name: string;
  readonly line: number;
  readonly lines: number;
}

/** Functions with more lines have to be classes, or several functions that can be tested alone. */
export const mostLines = 80;

/** @returns closures of more than `mostLines` lines; the caller must leave out tests */
export function largeClosures(sources: readonly SourceText[]): Closure[] {
  return fromSyntax(
    sources.filter(({ text }) => mayHoldLongFunction(text)),
    closuresOf,
  );
}

/** One line for each closure, with its position and the remedy. */
export function closureProblems(closures: readonly Closure[]): string[] {
  return closures.map(
    ({ path, line, name, lines }) =>
      `${path}:${line}: ${name} is a closure of ${lines} lines (at most ${mostLines}): make it a class, or split it into units`,
  );
}

/** Cheap filter that relies on Biome's formatting: a line, then more than `mostLines` lines of deeper indentation, then a line of the first one's. */
function mayHoldLongFunction(text: string): boolean {
  const last: (number | undefined)[] = [];
  return text.split("\n").some((line, i) => {
    const depth = line.search(/\S/);
    if (depth < 0 || /^\s*\).*\{$/.test(line)) return false; // the end of a parameter list continues the function's first line
    const opened = last[depth];
    last[depth] = i;
    return /^\s*[})]/.test(line) && opened !== undefined && i - opened + 1 > mostLines;
  });
}

function closuresOf({ path }: SourceText, file: SourceFile): Closure[] {
  const found: Closure[] = [];
  const lineOf = (at: number): number => file.getLineAndCharacterOfPosition(at).line + 1;
  const visit = (node: Node): void => {
    if (isFunctionLike(node)) {
      const line = lineOf(node.getStart(file));
      const lines = lineOf(node.end) - line + 1;
      if (lines > mostLines && returnsMethods(node)) found.push({ path, name: nameOf(node), line, lines });
    }
    node.forEachChild(visit);
  };
  visit(file);
  return found;
}

const isFunctionLike = (node: Node): boolean =>
  isFunctionDeclaration(node) ||
  isArrowFunction(node) ||
  isFunctionExpression(node) ||
  isMethodDeclaration(node) ||
  isGetAccessorDeclaration(node) ||
  isConstructorDeclaration(node);

function nameOf(node: Node): string {
  for (const one of [node, node.parent]) {
    const { name } = one as { name?: Node }; // cast: nodes have no common type for a name
    if (name !== undefined && isIdentifier(name)) return name.text;
  }
  return "(anonymous)";
}

/** True when the function returns an object literal, directly or through a variable, with a member that is a local function. */
function returnsMethods(node: Node): boolean {
  const { body } = node as { body?: Node }; // cast: nodes have no common type for a body
  if (body === undefined) return false;
  const variables = new Map<string, Node | undefined>();
  const functions = new Set<string>();
  const returned: Node[] = [];
  const collect = (inner: Node): void => {
    if (isVariableDeclaration(inner) && isIdentifier(inner.name)) {
      variables.set(inner.name.text, inner.initializer);
      if (inner.initializer !== undefined && isFunctionLike(inner.initializer)) functions.add(inner.name.text);
    }
    if (isFunctionDeclaration(inner) && inner.name !== undefined) functions.add(inner.name.text);
    if (isReturnStatement(inner) && inner.expression !== undefined) returned.push(inner.expression);
    if (!isFunctionLike(inner)) inner.forEachChild(collect);
  };
  if (isBlock(body)) body.forEachChild(collect);
  else returned.push(body);
  const hasMethod = (expression: Node | undefined): boolean => {
    const value = expression && unwrapped(expression);
    if (value === undefined) return false;
    if (isIdentifier(value)) return !functions.has(value.text) && hasMethod(variables.get(value.text));
    if (!isObjectLiteralExpression(value)) return false;
    return value.properties.some((member) => {
      if (isShorthandPropertyAssignment(member)) return isIdentifier(member.name) && functions.has(member.name.text);
      if (!isPropertyAssignment(member)) return isFunctionLike(member);
      const { initializer } = member;
      return isFunctionLike(initializer) || (isIdentifier(initializer) && functions.has(initializer.text));
    });
  };
  return returned.some(hasMethod);
}

function unwrapped(node: Node): Node {
  return isParenthesizedExpression(node) || isAsExpression(node) || isSatisfiesExpression(node)
    ? unwrapped(node.expression)
    : node;
}
