import { type Expression, type Node, type SourceFile, SyntaxKind } from "typescript/unstable/ast";
import {
  isAwaitExpression,
  isBinaryExpression,
  isBlock,
  isBreakStatement,
  isCallExpression,
  isContinueStatement,
  isDeleteExpression,
  isDoStatement,
  isExpressionStatement,
  isForInStatement,
  isForOfStatement,
  isForStatement,
  isFunctionLikeDeclaration,
  isPostfixUnaryExpression,
  isPrefixUnaryExpression,
  isPropertyAccessExpression,
  isReturnStatement,
  isSwitchStatement,
  isTryStatement,
  isWhileStatement,
} from "typescript/unstable/ast/is";
import { isLogging, type Kind, removed, replaced, textOf } from "./kind.ts";

/** Calls that release resources. */
const cleaning =
  /^(?:clear\w*|delete|abort|close|release|revert|dispose|destroy|stop|end|unref|off|removeListener|removeAllListeners|rm|unlink|unmount|cancel|forget|reset|splice)$/;

/** The expression without `await` and `void`. */
function bare(expression: Expression): Expression {
  const inner = isAwaitExpression(expression) ? expression.expression : expression;
  return inner.kind === SyntaxKind.VoidExpression ? (inner as unknown as { expression: Expression }).expression : inner; // cast: the kind says that it is a VoidExpression
}

function cleansUp(expression: Expression, file: SourceFile): boolean {
  const done = bare(expression);
  if (isDeleteExpression(done)) return true;
  if (!isCallExpression(done)) return false;
  const callee = done.expression;
  return cleaning.test(isPropertyAccessExpression(callee) ? textOf(callee.name, file) : textOf(callee, file));
}

function assigns(expression: Expression): boolean {
  if (isPostfixUnaryExpression(expression) || isPrefixUnaryExpression(expression)) return true;
  const operator = isBinaryExpression(expression) ? expression.operatorToken.kind : undefined;
  return operator !== undefined && operator >= SyntaxKind.FirstAssignment && operator <= SyntaxKind.LastAssignment;
}

const isLoop = (node: Node): boolean =>
  isForStatement(node) || isForOfStatement(node) || isForInStatement(node) || isWhileStatement(node) || isDoStatement(node);

/** Whether `break` here would leave a loop; false inside a switch. */
function isRightInLoop(node: Node): boolean {
  for (let at: Node | undefined = node.parent; at !== undefined; at = at.parent) {
    if (isLoop(at)) return true;
    if (isSwitchStatement(at)) return false;
  }
  return false;
}

/** Statements that leave a function with undefined, as its end does. */
const returnsNothing = (node: Node | undefined, file: SourceFile): boolean =>
  node !== undefined &&
  isReturnStatement(node) &&
  (node.expression === undefined || textOf(node.expression, file) === "undefined");

const isLastOfFunction = (node: Node): boolean =>
  isBlock(node.parent) && node.parent.statements.at(-1) === node && isFunctionLikeDeclaration(node.parent.parent);

export const statements: readonly Kind[] = [
  {
    name: "drop-statement",
    what: "a call that stands as a statement is left out",
    faultsIn: (node, file) =>
      isExpressionStatement(node) && isCallExpression(bare(node.expression)) && !cleansUp(node.expression, file)
        ? [removed(node, file)]
        : [],
  },
  {
    name: "drop-cleanup",
    what: "a delete, or a call that gives something back (clearTimeout, abort, close, release, …), is left out",
    faultsIn: (node, file) => (isExpressionStatement(node) && cleansUp(node.expression, file) ? [removed(node, file)] : []),
  },
  {
    name: "drop-assignment",
    what: "state is not updated: an assignment, ++ or -- is left out",
    faultsIn: (node, file) => (isExpressionStatement(node) && assigns(node.expression) ? [removed(node, file)] : []),
  },
  {
    name: "drop-await",
    what: "what is begun is not waited for",
    faultsIn: (node, file) => (isAwaitExpression(node) ? [replaced(node, file, textOf(node.expression, file))] : []),
  },
  {
    name: "drop-finally",
    what: "a finally does nothing",
    faultsIn: (node, file) => (isTryStatement(node) && node.finallyBlock ? [replaced(node.finallyBlock, file, "{}")] : []),
  },
  {
    name: "drop-catch",
    what: "a catch does nothing with the failure",
    faultsIn(node, file) {
      const block = isTryStatement(node) ? node.catchClause?.block : undefined;
      if (block === undefined || block.statements.length === 0 || isLogging(block, file)) return [];
      // At the end of a function, `return undefined` and nothing are the same.
      if (isLastOfFunction(node) && returnsNothing(block.statements[0], file)) return [];
      return [replaced(block, file, "{}")];
    },
  },
  {
    name: "return-early",
    what: "a function returns before its last statement",
    faultsIn(node, file) {
      if (!isBlock(node) || node.statements.length < 2 || isLoop(node.parent)) return [];
      const last = node.statements.at(-1)!;
      if (returnsNothing(last, file)) return [];
      const start = last.getStart(file);
      return [{ start, end: start, text: "return;\n" }];
    },
  },
  {
    name: "continue-break",
    what: "continue becomes break, and break of a loop becomes continue",
    faultsIn(node, file) {
      if (isContinueStatement(node) && isRightInLoop(node)) return [replaced(node, file, "break;")];
      return isBreakStatement(node) && isRightInLoop(node) ? [replaced(node, file, "continue;")] : [];
    },
  },
];
