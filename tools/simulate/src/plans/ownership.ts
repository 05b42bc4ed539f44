import { deployments } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { allFaults, lasting, namespace, type Plan, podTemplate } from "./plan.ts";

const labels = { app: "web" };
const object = {
  metadata: { name: "web", namespace },
  spec: { replicas: 2, selector: { matchLabels: labels }, template: podTemplate(labels) },
};

/** A Deployment is deleted with a propagation policy and immediately recreated under the same name. */
export const ownershipPlan: Plan = {
  name: "ownership",
  controllers: ["podgc", "deployment", "replicaset", "garbagecollector"],
  isLong: true,
  faults: allFaults,
  rules: lasting,
  async act(user) {
    for (let turn = 0; turn < 2; turn++) {
      await user.create(deployments, object);
      await user.pause(user.random() * 8_000);
      await user.remove(deployments, "web", user.random() < 0.5 ? "Foreground" : "Background");
      await user.pause(user.random() * 4_000);
    }
  },
  deleted({ kind, metadata }, view) {
    if (kind !== "ReplicaSet") return undefined;
    const owner = view.all("deployments").find(({ metadata: { uid } }) => uid === metadata.ownerReferences?.[0]?.uid);
    return owner === undefined || owner.metadata.deletionTimestamp
      ? undefined
      : `${metadata.name} is deleted though its owner is there`;
  },
  missing(view) {
    for (const folder of ["deployments", "replicasets", "pods"]) {
      const [left] = view.all(folder);
      if (left !== undefined) return `${left.kind} ${left.metadata.name} is left`;
    }
    return undefined;
  },
};
