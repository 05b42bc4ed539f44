import type { NodeInfo } from "./node-info.ts";

/** Older changes are forgotten; who has not read them begins with all nodes again. */
const mostKept = 10_000;

/** The nodes in the order of their changes, so that what is derived from all of them can be updated from those that changed. */
export class NodeChanges {
  #changed: NodeInfo[] = [];
  #forgotten = 0;

  /** Number of changes so far. */
  get position(): number {
    return this.#forgotten + this.#changed.length;
  }

  /** Notes that a node was added, changed or removed, or that its pods have changed. */
  note(node: NodeInfo): void {
    this.#changed.push(node);
    if (this.#changed.length <= mostKept) return;
    const dropped = mostKept / 2;
    this.#changed = this.#changed.slice(dropped);
    this.#forgotten += dropped;
  }

  /** Nodes that changed after a position, each once; undefined when some of these changes are forgotten. */
  since(position: number): ReadonlySet<NodeInfo> | undefined {
    return position < this.#forgotten ? undefined : new Set(this.#changed.slice(position - this.#forgotten));
  }
}
