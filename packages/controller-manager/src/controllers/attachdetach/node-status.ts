import type { Client } from "@coxswain/apimachinery/client/client";
import type { Newest } from "@coxswain/apimachinery/informers/newest";
import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import type { AttachedVolume, Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { nodes } from "@coxswain/apimachinery/objects/schema/kinds/resources";

/** Maintains `status.volumesAttached` of nodes; the kubelet waits for the entry before it mounts a volume. */
export interface NodeStatusUpdater {
  /** Writes the list if it changed. Writes of one node are serialized, so the last call determines the stored list. */
  write(node: string, signal: AbortSignal): Promise<void>;
}

interface NodeStatusUpdaterOptions {
  readonly client: Client;
  readonly known: Newest<Node>;
  /** Volumes that the node may use now; called when the write starts. */
  readonly usable: (node: string) => readonly AttachedVolume[];
  /** Whether this controller manages the entry of the volume. */
  readonly isManaged: (name: string) => boolean;
}

export function newNodeStatusUpdater({ client, known, usable, isManaged }: NodeStatusUpdaterOptions): NodeStatusUpdater {
  const pending = new Map<string, Promise<void>>();

  const write = async (name: string, signal: AbortSignal): Promise<void> => {
    const node = known.get(name);
    if (node === undefined) return; // deleted
    const volumesAttached = listFor(node, usable(name), isManaged);
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
      const before = pending.get(node) ?? Promise.resolve();
      const current = before.catch(() => {}).then(() => write(node, signal));
      pending.set(node, current);
      const forget = (): void => {
        if (pending.get(node) === current) pending.delete(node);
      };
      current.then(forget, forget);
      return current;
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
  isManaged: (name: string) => boolean,
): AttachedVolume[] | undefined {
  const foreign = now.filter(({ name }) => !isManaged(name));
  const managed = new Map(usable.map((volume) => [volume.name, volume]));
  const paths = new Map(now.map(({ name, devicePath }) => [name, devicePath]));
  const isSame =
    managed.size + foreign.length === paths.size &&
    [...managed.values()].every(({ name, devicePath }) => paths.get(name) === devicePath);
  return isSame ? undefined : [...foreign, ...[...managed.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1))];
}
