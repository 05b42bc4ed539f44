import type { Client } from "@coxswain/apimachinery/client/client";
import { isNotFound } from "@coxswain/apimachinery/errors/predicates";
import type { Newest } from "@coxswain/apimachinery/informers/newest";
import type { AttachedVolume, Node } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { nodes } from "@coxswain/apimachinery/schema/kinds/resources";

/** Maintains `status.volumesAttached` of nodes; the kubelet waits for the entry before it mounts a volume. */
export interface NodeReport {
  /** Writes the list if it changed. Writes of one node are serialized, so the last call determines the stored list. */
  write(node: string, signal: AbortSignal): Promise<void>;
}

export interface NodeReportOptions {
  readonly client: Client;
  readonly known: Newest<Node>;
  /** Volumes that the node may use now; called when the write starts. */
  readonly usable: (node: string) => readonly AttachedVolume[];
  /** Whether this controller manages the entry of the volume. */
  readonly isOurs: (name: string) => boolean;
}

export function newNodeReport({ client, known, usable, isOurs }: NodeReportOptions): NodeReport {
  const turns = new Map<string, Promise<void>>();

  const write = async (name: string, signal: AbortSignal): Promise<void> => {
    const node = known.get(name);
    if (node === undefined) return; // deleted
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
 * Computes the new list; entries of others (in-tree plugins, another control plane) are kept.
 * @returns undefined when the stored list is up to date
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
