import type { Client } from "@coxswain/apimachinery/client/client";
import { isNotFound } from "@coxswain/apimachinery/errors/predicates";
import type { Newest } from "@coxswain/apimachinery/informers/newest";
import type { AttachedVolume, Node } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { nodes } from "@coxswain/apimachinery/schema/kinds/resources";
import { parseVolumeId, type VolumeId } from "@coxswain/apimachinery/volumes/volume-id";
import { namesAttached } from "./attachments.ts";

/** Says in a node's status what it may use: the node agent waits for it before it mounts. */
export interface NodeReport {
  /** Writes the list if it is another. One write at a time for each node: the last one sent is the last one stored. */
  write(node: string, signal: AbortSignal): Promise<void>;
}

/** @param usable the volumes that the node may use now; asked when it is the node's turn */
export function newNodeReport(client: Client, known: Newest<Node>, usable: (node: string) => readonly VolumeId[]): NodeReport {
  const turns = new Map<string, Promise<void>>();

  const write = async (name: string, signal: AbortSignal): Promise<void> => {
    const node = known.get(name);
    if (node === undefined) return; // gone, and its status with it
    const volumesAttached = listFor(node, usable(name));
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
function listFor(node: Node, usable: readonly VolumeId[]): AttachedVolume[] | undefined {
  const now = new Set(namesAttached(node));
  const foreign = (node.status?.volumesAttached ?? []).filter(({ name }) => parseVolumeId(name) === undefined);
  const ours = [...new Set(usable)].sort();
  const isSame = ours.length + foreign.length === now.size && ours.every((id) => now.has(id));
  return isSame ? undefined : [...foreign, ...ours.map((name) => ({ name, devicePath: "" }))];
}
