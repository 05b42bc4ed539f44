import { type Node, type SourceFile, SyntaxKind } from "typescript/unstable/ast";
import {
  isArrayLiteralExpression,
  isBinaryExpression,
  isBindingElement,
  isCallExpression,
  isForOfStatement,
  isNumericLiteral,
  isObjectBindingPattern,
  isObjectLiteralExpression,
  isParameterDeclaration,
  isPropertyAccessExpression,
  isStringLiteral,
  isVariableDeclaration,
} from "typescript/unstable/ast/is";
import { type Edit, type Kind, replaced, textOf } from "./kind.ts";

/** Method name and arguments of a call `x.name(…)`. */
function methodCall(node: Node, file: SourceFile): { name: string; receiver: Node; args: readonly Node[] } | undefined {
  if (!isCallExpression(node) || !isPropertyAccessExpression(node.expression)) return undefined;
  return { name: textOf(node.expression.name, file), receiver: node.expression.expression, args: node.arguments };
}

const eachOf: ReadonlySet<string> = new Set(["every", "some", "map", "flatMap", "filter", "forEach", "find", "reduce"]);
const cutting: ReadonlySet<string> = new Set(["slice", "subarray", "substring", "at", "charAt", "codePointAt", "splice"]);
const narrowing: ReadonlySet<string> = new Set([
  ...["filter", "sort", "toSorted", "reverse", "toReversed", "trim", "trimEnd", "trimStart", "toLowerCase", "toUpperCase"],
  ...["slice", "flat", "concat", "normalize"],
]);

/** Changes a literal number, boolean or string. */
function otherLiteral(node: Node, file: SourceFile): Edit[] {
  if (isNumericLiteral(node)) return [replaced(node, file, `(${textOf(node, file)} + 1)`)];
  if (isStringLiteral(node)) return [replaced(node, file, textOf(node, file) === '""' ? '"x"' : '""')];
  if (node.kind === SyntaxKind.TrueKeyword) return [replaced(node, file, "false")];
  return node.kind === SyntaxKind.FalseKeyword ? [replaced(node, file, "true")] : [];
}

/** Their objects come from an API server, which gives each a name and a UID: defaults for these are there for the types alone. */
const readers = /(?:^|\/)packages\/(?:controller-manager|scheduler|cluster-services)\//;

/** Whether a default is for the name or the UID of a stored object: `metadata.name ?? ""`, `{ name = "" } = pod.metadata`. */
function isForTypeAlone(node: Node, file: SourceFile): boolean {
  if (!readers.test(file.fileName)) return false;
  if (isBinaryExpression(node))
    return /\bmetadata\??\.(?:name|uid)$/.test(textOf(node.left, file)) && textOf(node.right, file) === '""';
  if (!isBindingElement(node) || !/^(?:name|uid)\b/.test(textOf(node, file))) return false;
  const declaration = node.parent.parent;
  const isOfMetadata = isVariableDeclaration(declaration) && declaration.initializer !== undefined;
  return isOfMetadata && /\bmetadata$/.test(textOf(declaration.initializer, file));
}

/** Removes the first or the last element of a list, including the comma. */
function withoutEnds(nodes: readonly Node[], file: SourceFile): Edit[] {
  const [first, second, last] = [nodes[0], nodes[1], nodes.at(-1)];
  if (first === undefined || last === undefined) return [];
  if (second === undefined) return [replaced(first, file, "")];
  return [
    { start: first.getStart(file), end: second.getStart(file), text: "" },
    { start: nodes.at(-2)!.end, end: last.end, text: "" },
  ];
}

export const values: readonly Kind[] = [
  {
    name: "first-only",
    what: "only the first of several is looked at, by a loop or by map, filter, every, …",
    faultsIn(node, file) {
      if (isForOfStatement(node))
        return node.awaitModifier ? [] : [replaced(node.expression, file, `[...(${textOf(node.expression, file)})].slice(0, 1)`)];
      const call = methodCall(node, file);
      if (call === undefined || !eachOf.has(call.name)) return [];
      return [replaced(call.receiver, file, `${textOf(call.receiver, file)}.slice(0, 1)`)];
    },
  },
  {
    name: "drop-element",
    what: "the first or the last element of an array literal is left out",
    faultsIn: (node, file) => (isArrayLiteralExpression(node) ? withoutEnds(node.elements, file) : []),
  },
  {
    name: "drop-property",
    what: "the first or the last property of an object literal is left out",
    faultsIn: (node, file) => (isObjectLiteralExpression(node) ? withoutEnds(node.properties, file) : []),
  },
  {
    name: "off-by-one",
    what: "slice and its like cut one further, x + 1 and x - 1 become x",
    faultsIn(node, file) {
      const call = methodCall(node, file);
      const bound = call !== undefined && cutting.has(call.name) ? call.args.slice(0, 2).at(-1) : undefined;
      if (bound !== undefined) return [replaced(bound, file, `(${textOf(bound, file)}) + 1`)];
      const isOne = isBinaryExpression(node) && isNumericLiteral(node.right) && textOf(node.right, file) === "1";
      return isOne && /^[+-]$/.test(textOf(node.operatorToken, file))
        ? [replaced(node, file, `(${textOf(node.left, file)})`)]
        : [];
    },
  },
  {
    name: "wrong-default",
    what: "the default behind ?? or ||, of a parameter or of a destructured field is another one",
    faultsIn(node, file) {
      if (isForTypeAlone(node, file)) return [];
      // Defaults in array patterns are mostly for regex groups that always match.
      const isField = isBindingElement(node) && isObjectBindingPattern(node.parent);
      if ((isParameterDeclaration(node) || isField) && node.initializer) return otherLiteral(node.initializer, file);
      if (!isBinaryExpression(node)) return [];
      const isDefault = [SyntaxKind.QuestionQuestionToken, SyntaxKind.BarBarToken].includes(node.operatorToken.kind);
      return isDefault ? otherLiteral(node.right, file) : [];
    },
  },
  {
    name: "drop-default",
    what: "the default behind ?? is left out",
    faultsIn: (node, file) =>
      isBinaryExpression(node) && node.operatorToken.kind === SyntaxKind.QuestionQuestionToken && !isForTypeAlone(node, file)
        ? [replaced(node, file, `(${textOf(node.left, file)})`)]
        : [],
  },
  {
    name: "swap-arguments",
    what: "two neighbouring arguments of one type change places",
    faultsIn(node, file) {
      if (!isCallExpression(node)) return [];
      return node.arguments.slice(1).flatMap((right, i) => {
        const left = node.arguments[i]!;
        const [first, second] = [textOf(left, file), textOf(right, file)];
        if (first === second) return [];
        const between = file.text.slice(left.end, right.getStart(file));
        return [{ start: left.getStart(file), end: right.end, text: `${second}${between}${first}` }];
      });
    },
  },
  {
    name: "drop-call",
    what: "a filter, sort, trim, toLowerCase, slice, … within an expression is left out",
    faultsIn(node, file) {
      const call = methodCall(node, file);
      return call !== undefined && narrowing.has(call.name) ? [replaced(node, file, textOf(call.receiver, file))] : [];
    },
  },
];
