import { persistentVolumeClaims, persistentVolumes, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { isActive, type Stored } from "../invariants/view.ts";
import { allFaults, lasting, namespace, type Plan, podTemplate } from "./plan.ts";

const names = ["a", "b"] as const;
const accessModes = ["ReadWriteOnce"];

const uses = ({ spec }: Stored, claim: string): boolean =>
  (spec.volumes ?? []).some(
    ({ persistentVolumeClaim: used }: { persistentVolumeClaim?: { claimName: string } }) => used?.claimName === claim,
  );

/** Each claim is bound to a different volume; one is deleted while a Pod uses it, and stays until the Pod is gone. */
export const volumesPlan: Plan = {
  name: "volumes",
  controllers: ["podgc", "persistentvolume-binder", "pvc-protection", "pv-protection"],
  apis: ["storage.k8s.io/v1"],
  faults: allFaults,
  rules: lasting,
  async act(user) {
    for (const name of names) {
      await user.create(persistentVolumes, {
        metadata: { name: `volume-${name}` },
        spec: {
          capacity: { storage: "1Gi" },
          accessModes,
          persistentVolumeReclaimPolicy: "Retain",
          hostPath: { path: `/data/${name}` },
        },
      });
      await user.create(persistentVolumeClaims, {
        metadata: { name, namespace },
        spec: { accessModes, storageClassName: "", resources: { requests: { storage: "1Gi" } } },
      });
    }
    const { spec } = podTemplate({}) as { spec: object }; // cast: the template has a spec
    await user.create(pods, {
      metadata: { name: "user", namespace },
      spec: { ...spec, volumes: [{ name: "data", persistentVolumeClaim: { claimName: "a" } }] },
    });
    await user.pause(user.random() * 10_000);
    await user.remove(persistentVolumeClaims, "a");
    await user.pause(user.random() * 10_000);
    await user.remove(pods, "user");
    await user.pause(user.random() * 5_000);
  },
  deleted({ kind, metadata }, view) {
    if (kind !== "PersistentVolumeClaim") return undefined;
    // A Pod without a node does not use its volumes yet.
    const pod = view.all("pods").find((pod) => isActive(pod) && pod.spec.nodeName && uses(pod, metadata.name ?? ""));
    return pod === undefined ? undefined : `the claim ${metadata.name} is gone while ${pod.metadata.name} uses it`;
  },
  missing(view) {
    if (view.get("persistentvolumeclaims", `${namespace}/a`) !== undefined) return "the claim that was deleted is still there";
    if (view.all("pods").length > 0) return "the pod is still there";
    const claim = view.get("persistentvolumeclaims", `${namespace}/b`);
    if (claim?.status?.phase !== "Bound") return `the claim is ${claim?.status?.phase}`;
    const volumes = view.all("persistentvolumes");
    const mine = volumes.filter(({ spec }) => spec.claimRef?.uid === claim.metadata.uid);
    if (mine.length !== 1 || mine[0]?.metadata.name !== claim.spec.volumeName)
      return `the claim has ${claim.spec.volumeName}, and ${mine.map(({ metadata }) => metadata.name).join()} say so`;
    if (mine[0]?.status?.phase !== "Bound") return `the claim's volume is ${mine[0]?.status?.phase}`;
    const other = volumes.find((volume) => volume !== mine[0]);
    // A claim that was deleted before it was bound has no volume.
    const phase = other?.status?.phase;
    return phase === "Released" || (phase === "Available" && other?.spec.claimRef === undefined)
      ? undefined
      : `the other volume is ${phase}`;
  },
};
