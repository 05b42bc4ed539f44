import {
  nodes,
  persistentVolumeClaims,
  persistentVolumes,
  pods,
  volumeAttachments,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Stored, View } from "../invariants/view.ts";
import { allFaults, lasting, namespace, type Plan, type User } from "./plan.ts";

/** Nodes created by the user, without kubelets that mount volumes. */
const names = ["edge-0", "edge-1"] as const;
const accessModes = ["ReadWriteOnce"];
const capacity = { storage: "1Gi" };

const pod = (nodeName: string): object => ({
  metadata: { name: `on-${nodeName}`, namespace },
  spec: {
    nodeName,
    terminationGracePeriodSeconds: 0,
    containers: [{ name: "app", image: "app:1" }],
    volumes: [{ name: "data", persistentVolumeClaim: { claimName: "data" } }],
  },
});

/** Acts as the CSI driver's external-attacher. */
async function attachAll(user: User): Promise<void> {
  const { items } = await user.client.list<Stored>(volumeAttachments).catch(() => ({ items: [] }));
  for (const { metadata } of items) {
    const target = { namespace: "", name: metadata.name ?? "" };
    await user.change(volumeAttachments, target, (found) => (found.status = { attached: true }), "status");
  }
}

/** A Pod with a volume moves from node to node; in the end the volume is attached only to the last one. */
export const attachDetachPlan: Plan = {
  name: "attachdetach",
  controllers: ["podgc", "persistentvolume-binder", "attachdetach"],
  apis: ["storage.k8s.io/v1"],
  faults: allFaults,
  rules: lasting,
  async act(user) {
    const annotations = { "volumes.kubernetes.io/controller-managed-attach-detach": "true" };
    for (const name of names) await user.create(nodes, { metadata: { name, annotations } });
    await user.create(persistentVolumes, {
      metadata: { name: "data" },
      spec: {
        capacity,
        accessModes,
        csi: { driver: "csi.example.com", volumeHandle: "1" },
        claimRef: { namespace, name: "data" },
      },
    });
    await user.create(persistentVolumeClaims, {
      metadata: { name: "data", namespace },
      spec: { accessModes, storageClassName: "", volumeName: "data", resources: { requests: capacity } },
    });
    const [first, last] = names;
    for (const name of user.isSmall ? names : [...names, first, last]) {
      await user.create(pods, pod(name));
      await user.pause(user.random() * 6_000);
      await attachAll(user);
      await user.pause(user.random() * 4_000);
      // Both Pods exist for a while, and only one of them can have the volume.
      if (name === last) await user.remove(pods, `on-${first}`);
    }
    await user.pause(user.random() * 4_000);
  },
  always: (view) => {
    const attached = view.all("volumeattachments");
    return attached.length > 1 ? `attached to ${attached.map(({ spec }) => spec.nodeName).join(" and ")}` : undefined;
  },
  missing(view) {
    const attachments = view.all("volumeattachments").map(({ spec }) => spec.nodeName as string); // cast: the API server has validated it
    if (attachments.join() !== names[1]) return `the volume is attached to ${attachments.join(" and ") || "no node"}`;
    return reported(view, names[0]) === 0 ? undefined : `the status of ${names[0]} tells of the volume`;
  },
};

const reported = (view: View, name: string): number => view.get("minions", name)?.status?.volumesAttached?.length ?? 0;
