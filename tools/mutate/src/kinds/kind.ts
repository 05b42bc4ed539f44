import type { Node, SourceFile } from "typescript/unstable/ast";
import { isBlock, isCallExpression, isExpressionStatement, isIfStatement } from "typescript/unstable/ast/is";

/** A replacement of a range of a file's text. */
export interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** A kind of mutation and where it applies in the syntax tree. */
export interface Kind {
  readonly name: string;
  /** Description for `--help`. */
  readonly what: string;
  /** @returns edits, each a separate mutant; those that do not compile are discarded later */
  faultsIn(node: Node, file: SourceFile): readonly Edit[];
}

export const textOf = (node: Node, file: SourceFile): string => file.text.slice(node.getStart(file), node.end);

export const replaced = (node: Node, file: SourceFile, text: string): Edit => ({
  start: node.getStart(file),
  end: node.end,
  text,
});

export const removed = (node: Node, file: SourceFile): Edit => replaced(node, file, "");

/**
 * What only logs is not mutated, nor whether it does: tests need not detect missing log lines. `log.fatal` ends the process: only
 * its text is left out.
 */
export function isLogging(node: Node, file: SourceFile): boolean {
  if (isIfStatement(node)) return node.elseStatement === undefined && isLogging(node.thenStatement, file);
  if (isBlock(node)) return node.statements.length > 0 && node.statements.every((each) => isLogging(each, file));
  const isStatement = isExpressionStatement(node);
  const call = isStatement ? node.expression : node;
  if (!isCallExpression(call)) return false;
  const callee = textOf(call.expression, file);
  if (!/^(?:this\.#?)?(?:\w+\.)?(?:log|logger|console)\??\./.test(callee)) return false;
  return !isStatement || /\b(?:log|logger)\b.*\.(?:debug|info|warn|error)$/.test(callee);
}
