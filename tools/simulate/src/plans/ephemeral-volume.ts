import { persistentVolumeClaims, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { controllerOf } from "../invariants/view.ts";
import { allFaults, lasting, namespace, type Plan, podTemplate, type User } from "./plan.ts";

const spec = { accessModes: ["ReadWriteOnce"], storageClassName: "", resources: { requests: { storage: "1Gi" } } };
const volumes = ["cache", "logs"] as const;
const names = ["worker-0", "worker-1"] as const;

/** A claim with the name of worker-0's, created before the Pod, which must not use it. */
const foreign = `${names[0]}-${volumes[0]}`;

function createPod(user: User, name: string): Promise<void> {
  const { spec: podSpec } = podTemplate({}) as { spec: object }; // cast: the template has a spec
  return user.create(pods, {
    metadata: { name, namespace },
    spec: { ...podSpec, volumes: volumes.map((name) => ({ name, ephemeral: { volumeClaimTemplate: { spec } } })) },
  });
}

/** Pods with generic ephemeral volumes have claims of their own, also when a claim of the same name is in the way at first. */
export const ephemeralVolumePlan: Plan = {
  name: "ephemeral-volume",
  controllers: ["podgc", "ephemeral-volume", "pvc-protection"],
  faults: allFaults,
  rules: lasting,
  async act(user) {
    await user.create(persistentVolumeClaims, { metadata: { name: foreign, namespace }, spec });
    for (const name of names) {
      await createPod(user, name);
      await user.pause(user.random() * 4_000);
    }
    const uid = await user.uidOf(persistentVolumeClaims, foreign);
    await user.remove(persistentVolumeClaims, foreign, "Background", uid);
    await user.pause(user.random() * 6_000);
  },
  missing(view) {
    for (const pod of names) {
      const uid = view.get("pods", `${namespace}/${pod}`)?.metadata.uid;
      for (const volume of volumes) {
        const claim = view.get("persistentvolumeclaims", `${namespace}/${pod}-${volume}`);
        if (claim === undefined) return `${pod} has no claim for ${volume}`;
        if (claim.metadata.deletionTimestamp || controllerOf(claim) !== uid) return `the claim for ${volume} is not ${pod}'s`;
      }
    }
    const all = view.all("persistentvolumeclaims").length;
    return all === names.length * volumes.length ? undefined : `there are ${all} claims`;
  },
};
