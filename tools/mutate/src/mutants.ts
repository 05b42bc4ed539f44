import { createHash } from "node:crypto";
import type { Node, SourceFile } from "typescript/unstable/ast";
import { isClassDeclaration, isFunctionDeclaration, isMethodDeclaration } from "typescript/unstable/ast/is";
import { conditions } from "./kinds/conditions.ts";
import type { Edit, Kind } from "./kinds/kind.ts";
import { isLogging, textOf } from "./kinds/kind.ts";
import { statements } from "./kinds/statements.ts";
import { values } from "./kinds/values.ts";

export const kinds: readonly Kind[] = [...conditions, ...statements, ...values];

/** A mutation of one file. */
export interface Mutant {
  /** Hash of file, kind, enclosing function and texts; independent of the position in the file. */
  readonly id: string;
  readonly kind: string;
  /** Relative to the repository. */
  readonly file: string;
  readonly line: number;
  readonly edit: Edit;
  /** Description of the fault; undefined unless it is hand-written. */
  readonly why?: string;
}

/** @param file path relative to the repository */
export function mutantsOf(file: string, source: SourceFile, chosen: readonly Kind[] = kinds): Mutant[] {
  const found: Mutant[] = [];
  const times = new Map<string, number>();
  const add = (kind: Kind, node: Node, edit: Edit): void => {
    const what = [file, kind.name, placeOf(node, source), normal(source.text.slice(edit.start, edit.end)), normal(edit.text)];
    const key = JSON.stringify(what);
    const before = times.get(key) ?? 0;
    times.set(key, before + 1);
    const id = createHash("sha256").update(`${key}${before}`).digest("hex").slice(0, 10);
    const line = source.getLineAndCharacterOfPosition(edit.start).line + 1;
    found.push({ id, kind: kind.name, file, line, edit });
  };
  const visit = (node: Node): void => {
    if (isLogging(node, source)) return;
    for (const kind of chosen) for (const edit of kind.faultsIn(node, source)) add(kind, node, edit);
    node.forEachChild(visit);
  };
  visit(source);
  return found;
}

export function mutatedText(text: string, { edit }: Mutant): string {
  return text.slice(0, edit.start) + edit.text + text.slice(edit.end);
}

const normal = (text: string): string => text.replaceAll(/\s+/g, " ").trim();

/** Names of the enclosing functions, methods and classes. */
function placeOf(node: Node, source: SourceFile): string {
  const names: string[] = [];
  for (let at: Node | undefined = node; at !== undefined; at = at.parent) {
    if ((isFunctionDeclaration(at) || isMethodDeclaration(at) || isClassDeclaration(at)) && at.name)
      names.unshift(textOf(at.name, source));
  }
  return names.join(".");
}
