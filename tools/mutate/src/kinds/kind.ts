import type { Node, SourceFile } from "typescript/unstable/ast";

/** A piece of a file's text and what stands there instead. */
export interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** One kind of fault: what of it can be put into a node of the syntax tree. */
export interface Kind {
  readonly name: string;
  /** One line for `--help`. */
  readonly what: string;
  /** @returns each edit is a fault of its own; those that do not compile are passed over later */
  faultsIn(node: Node, file: SourceFile): readonly Edit[];
}

export const textOf = (node: Node, file: SourceFile): string => file.text.slice(node.getStart(file), node.end);

export const replaced = (node: Node, file: SourceFile, text: string): Edit => ({
  start: node.getStart(file),
  end: node.end,
  text,
});

export const removed = (node: Node, file: SourceFile): Edit => replaced(node, file, "");
