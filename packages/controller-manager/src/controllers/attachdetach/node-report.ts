import type { Client } from "@coxswain/apimachinery/client/client";
import { isNotFound } from "@coxswain/apimachinery/errors/predicates";
import type { Newest } from "@coxswain/apimachinery/informers/newest";
import type { AttachedVolume, Node } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { nodes } from "@coxswain/apimachinery/schema/kinds/resources";

/** Says in a node's status what it may use: the node agent waits for it before it mounts. */
export interface NodeReport {
  /** Writes the list if it is another. One write at a time for each node: the last one sent is the last one stored. */
  write(node: string, signal: AbortSignal): Promise<void>;
}

export interface NodeReportOptions {
  readonly client: Client;
  readonly known: Newest<Node>;
  /** The volumes that the node may use now; asked when it is the node's turn. */
  readonly usable: (node: string) => readonly AttachedVolume[];
  /** Whether it is this controller that says so of a volume. */
  readonly isOurs: (name: string) => boolean;
}

export function newNodeReport({ client, known, usable, isOurs }: NodeReportOptions): NodeReport {
  const turns = new Map<string, Promise<void>>();

  const write = async (name: string, signal: AbortSignal): Promise<void> => {
    const node = known.get(name);
    if (node === undefined) return; // gone, and its status with it
    const volumesAttached = listFor(node, usable(name), isOurs);
    if (volumesAttached === undefined) return;
    const body = { status: { volumesAttached: volumesAttached.length === 0 ? null : volumesAttached } };
    try {
      known.written(await client.patch<Node>(nodes, { name, subresource: "status" }, { type: "strategic", body }, { signal }));
    } catch (err) {
      if (!isNotFound(err)) throw err;
    }
  };

  return {
    write(node, signal) {
      const before = turns.get(node) ?? Promise.resolve();
      const turn = before.catch(() => {}).then(() => write(node, signal));
      turns.set(node, turn);
      const leave = (): void => {
        if (turns.get(node) === turn) turns.delete(node);
      };
      turn.then(leave, leave);
      return turn;
    },
  };
}

/**
 * What others attached (in-tree plugins, another control plane) stays in the list.
 * @returns undefined when the node has it so
 */
function listFor(
  { status: { volumesAttached: now = [] } = {} }: Node,
  usable: readonly AttachedVolume[],
  isOurs: (name: string) => boolean,
): AttachedVolume[] | undefined {
  const foreign = now.filter(({ name }) => !isOurs(name));
  const ours = new Map(usable.map((volume) => [volume.name, volume]));
  const paths = new Map(now.map(({ name, devicePath }) => [name, devicePath]));
  const isSame =
    ours.size + foreign.length === paths.size &&
    [...ours.values()].every(({ name, devicePath }) => paths.get(name) === devicePath);
  return isSame ? undefined : [...foreign, ...[...ours.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1))];
}
