/** Actual state of one volume on one node. */
export interface Attached {
  readonly node: string;
  /** Name of the VolumeAttachment; the volume id for flex volumes. */
  readonly name: string;
  readonly attached: boolean;
  /** An attempt failed and may have attached the volume nevertheless; attaching is retried. */
  readonly uncertain?: boolean;
  readonly deleting: boolean;
  readonly error?: string | undefined;
  /** The node lists the volume in `status.volumesInUse`. */
  readonly inUse: boolean;
}

/** State of one volume on all nodes. */
interface PlanInput {
  /** Nodes whose Pods need the volume. */
  readonly desired: readonly string[];
  readonly attachments: readonly Attached[];
  readonly exclusive: boolean;
  /** Time since which no Pod on the node needs the volume, in ms of the monotonic clock; undefined: since now. */
  unusedSince(node: string): number | undefined;
  readonly now: number;
}

/** The next step for a volume on one node. */
export type AttachStep =
  | { readonly do: "attach"; readonly node: string }
  /** The driver is attaching it. */
  | { readonly do: "await"; readonly node: string }
  | { readonly do: "attached"; readonly node: string }
  | { readonly do: "failed"; readonly node: string; readonly error: string }
  /** The volume is exclusive and attached, or about to be attached, to these nodes. */
  | { readonly do: "refuse"; readonly node: string; readonly others: readonly string[] }
  /** @param forced the unmount limit has expired */
  | { readonly do: "detach"; readonly node: string; readonly name: string; readonly forced: boolean }
  /** The node still uses the volume; wait for the unmount. */
  | { readonly do: "hold"; readonly node: string; readonly forMs: number };

/**
 * Time limit for a node to unmount a volume that no Pod needs before it is force-detached.
 * Source: reconciler maxWaitForUnmountDuration
 */
export const unmountLimitMs = 6 * 60_000;

/** Pure: plans the steps for one volume on all nodes. Source: pkg/controller/volume/attachdetach/reconciler */
export function planVolume({ desired, attachments, exclusive, unusedSince, now }: PlanInput): AttachStep[] {
  const unused = attachments.filter(({ node, deleting }) => !deleting && !desired.includes(node));
  const steps: AttachStep[] = unused.map(({ node, name, inUse }) => {
    const remainingMs = (unusedSince(node) ?? now) + unmountLimitMs - now;
    return inUse && remainingMs > 0
      ? { do: "hold", node, forMs: remainingMs }
      : { do: "detach", node, name, forced: remainingMs <= 0 };
  });
  for (const node of desired) {
    const existing = attachments.find((attachment) => attachment.node === node);
    if (existing !== undefined) steps.push(stepOf(existing));
    else {
      const others = attachments.map((attachment) => attachment.node);
      // When several nodes need an exclusive volume that is not attached, the first one gets it.
      const assigned = steps.flatMap((step) => (step.do === "attach" ? [step.node] : []));
      const taken = [...others, ...assigned];
      steps.push(exclusive && taken.length > 0 ? { do: "refuse", node, others: taken } : { do: "attach", node });
    }
  }
  return steps;
}

function stepOf({ node, attached, uncertain, deleting, error }: Attached): AttachStep {
  if (uncertain) return { do: "attach", node };
  if (deleting) return { do: "failed", node, error: "volume attachment is being deleted" };
  if (attached) return { do: "attached", node };
  return error === undefined ? { do: "await", node } : { do: "failed", node, error };
}
