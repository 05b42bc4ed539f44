import { attachmentName, parseVolumeId, type VolumeId } from "@coxswain/apimachinery/volumes/volume-id";

/**
 * Nodes from which the controller may detach a volume: those with an attachment at startup, and those where a Pod has needed
 * it since.
 */
export class DetachableNodes {
  readonly #byVolume = new Map<VolumeId, Set<string>>();

  /** Number of volumes with such nodes. */
  get volumes(): number {
    return this.#byVolume.size;
  }

  of(id: VolumeId): ReadonlySet<string> {
    return this.#byVolume.get(id) ?? none;
  }

  /** The volume of a VolumeAttachment; undefined when the controller may not detach it. */
  idOf(name: string, node: string): VolumeId | undefined {
    for (const [id, nodes] of this.#byVolume) {
      const isOfCsi = nodes.has(node) && parseVolumeId(id) !== undefined;
      if (isOfCsi && attachmentName(id, node) === name) return id;
    }
    return undefined;
  }

  add(id: VolumeId, node: string): void {
    this.#byVolume.getOrInsertComputed(id, () => new Set()).add(node);
  }

  /**
   * Adds the nodes where the volume is needed, and forgets those that neither need it nor have it.
   * @returns the volume's nodes
   */
  update(id: VolumeId, needing: Iterable<string>, involved: ReadonlySet<string>): ReadonlySet<string> {
    const nodes = new Set(this.#byVolume.get(id)).union(new Set(needing)).intersection(involved);
    if (nodes.size > 0) this.#byVolume.set(id, nodes);
    else this.#byVolume.delete(id);
    return nodes;
  }
}

const none: ReadonlySet<string> = new Set();
