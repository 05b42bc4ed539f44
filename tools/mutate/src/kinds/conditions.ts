import { type BinaryExpression, type Node, type SourceFile, SyntaxKind } from "typescript/unstable/ast";
import {
  isBinaryExpression,
  isBlock,
  isConditionalExpression,
  isDoStatement,
  isIfStatement,
  isWhileStatement,
} from "typescript/unstable/ast/is";
import { type Edit, type Kind, removed, replaced, textOf } from "./kind.ts";

const isLogic = (node: Node): node is BinaryExpression =>
  isBinaryExpression(node) &&
  (node.operatorToken.kind === SyntaxKind.AmpersandAmpersandToken || node.operatorToken.kind === SyntaxKind.BarBarToken);

const comparisons: Readonly<Record<string, string>> = { "<": "<=", "<=": "<", ">": ">=", ">=": ">" };
const logic: Readonly<Record<string, string>> = { "&&": "||", "||": "&&" };

/** Replaces operators; operands with `??` or of other precedence are parenthesized to keep their meaning. */
function otherOperator(node: Node, file: SourceFile, others: Readonly<Record<string, string>>): Edit[] {
  if (!isBinaryExpression(node)) return [];
  const other = others[textOf(node.operatorToken, file)];
  if (other === undefined) return [];
  return [replaced(node, file, `((${textOf(node.left, file)}) ${other} (${textOf(node.right, file)}))`)];
}

/** Statements that leave the enclosing code, as guard clauses do. */
const leaving: ReadonlySet<SyntaxKind> = new Set([
  SyntaxKind.ReturnStatement,
  SyntaxKind.ThrowStatement,
  SyntaxKind.ContinueStatement,
  SyntaxKind.BreakStatement,
]);

function leaves(statement: Node): boolean {
  const last = isBlock(statement) ? statement.statements.at(-1) : statement;
  return last !== undefined && leaving.has(last.kind);
}

export const conditions: readonly Kind[] = [
  {
    name: "negate-condition",
    what: "the condition of an if, a loop or ?: is negated",
    faultsIn(node, file) {
      const condition =
        isIfStatement(node) || isWhileStatement(node) || isDoStatement(node)
          ? node.expression
          : isConditionalExpression(node)
            ? node.condition
            : undefined;
      return condition === undefined ? [] : [replaced(condition, file, `!(${textOf(condition, file)})`)];
    },
  },
  {
    name: "drop-guard",
    what: "an if that returns, throws, continues or breaks is left out",
    faultsIn: (node, file) =>
      isIfStatement(node) && node.elseStatement === undefined && leaves(node.thenStatement) ? [removed(node, file)] : [],
  },
  {
    name: "drop-operand",
    what: "one side of && or || is left out: the second guard behind the first",
    faultsIn: (node, file) =>
      isLogic(node) ? [node.left, node.right].map((side) => replaced(node, file, `(${textOf(side, file)})`)) : [],
  },
  { name: "swap-logic", what: "&& becomes ||, and || becomes &&", faultsIn: (node, file) => otherOperator(node, file, logic) },
  {
    name: "boundary",
    what: "< becomes <=, > becomes >=, and the other way round",
    faultsIn: (node, file) => otherOperator(node, file, comparisons),
  },
];
