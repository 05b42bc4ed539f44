/** One volume on one node, as it is. */
export interface Attached {
  readonly node: string;
  /** Of the VolumeAttachment, where there is one. */
  readonly name: string;
  readonly attached: boolean;
  /** An attempt failed, and may have left it attached all the same: attaching starts anew. */
  readonly uncertain?: boolean;
  readonly deleting: boolean;
  readonly error?: string | undefined;
  /** The node says that it uses the volume. */
  readonly inUse: boolean;
}

export interface PlanInput {
  /** Nodes whose Pods need the volume. */
  readonly wanted: readonly string[];
  readonly attachments: readonly Attached[];
  readonly exclusive: boolean;
  /** Since when nobody has needed it on a node, in ms of the clock; absent: since now. */
  unwantedSince(node: string): number | undefined;
  readonly now: number;
}

export type AttachStep =
  | { readonly do: "attach"; readonly node: string }
  /** Somebody is at it. */
  | { readonly do: "await"; readonly node: string }
  | { readonly do: "attached"; readonly node: string }
  | { readonly do: "failed"; readonly node: string; readonly error: string }
  /** It may be on one node only and is on these. */
  | { readonly do: "refuse"; readonly node: string; readonly others: readonly string[] }
  /** @param forced the node has had its time to unmount it */
  | { readonly do: "detach"; readonly node: string; readonly name: string; readonly forced: boolean }
  /** The node still uses it. */
  | { readonly do: "hold"; readonly node: string; readonly forMs: number };

/** So long a node that says nothing may keep a volume that its Pods are done with. Source: reconciler maxWaitForUnmountDuration */
export const unmountLimitMs = 6 * 60_000;

/** What one volume needs, on all nodes. Source: pkg/controller/volume/attachdetach/reconciler */
export function planVolume({ wanted, attachments, exclusive, unwantedSince, now }: PlanInput): AttachStep[] {
  const leaving = attachments.filter(({ node, deleting }) => !deleting && !wanted.includes(node));
  const steps: AttachStep[] = leaving.map(({ node, name, inUse }) => {
    const leftMs = (unwantedSince(node) ?? now) + unmountLimitMs - now;
    return inUse && leftMs > 0 ? { do: "hold", node, forMs: leftMs } : { do: "detach", node, name, forced: leftMs <= 0 };
  });
  for (const node of wanted) {
    const there = attachments.find((attachment) => attachment.node === node);
    if (there !== undefined) steps.push(stepOf(there));
    else {
      const others = attachments.filter((attachment) => attachment.node !== node).map((attachment) => attachment.node);
      // Of several nodes that need a free volume the first gets it.
      const promised = steps.flatMap((step) => (step.do === "attach" ? [step.node] : []));
      const taken = [...others, ...promised];
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
