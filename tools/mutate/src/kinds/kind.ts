import type { Node, SourceFile } from "typescript/unstable/ast";

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
