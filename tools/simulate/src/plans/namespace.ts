import { configMaps, deployments, jobs, namespaces } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { View } from "../invariants/view.ts";
import { allFaults, lasting, type Plan, podTemplate } from "./plan.ts";

const labels = { app: "web" };
const metadata = { namespace: "team" };

/** A namespace with running workloads is deleted; nothing of it remains. */
export const namespacePlan: Plan = {
  name: "namespace",
  controllers: ["podgc", "namespace", "deployment", "replicaset", "job", "garbagecollector"],
  isLong: true,
  faults: allFaults,
  rules: lasting,
  async act(user) {
    await user.create(namespaces, { metadata: { name: "team" } });
    await user.create(configMaps, { metadata: { ...metadata, name: "settings", finalizers: ["example.com/held"] } });
    await user.create(deployments, {
      metadata: { ...metadata, name: "web" },
      spec: { replicas: 2, selector: { matchLabels: labels }, template: podTemplate(labels) },
    });
    await user.create(jobs, {
      metadata: { ...metadata, name: "sum" },
      spec: { template: podTemplate({}, "app:1", "Never") },
    });
    await user.pause(user.random() * 8_000);
    await user.remove(namespaces, "team");
    await user.pause(user.random() * 5_000);
    await user.change(configMaps, { namespace: "team", name: "settings" }, ({ metadata }) => {
      metadata.finalizers = [];
    });
  },
  deleted: ({ kind }, view) => (kind === "Namespace" ? leftOf(view) : undefined),
  missing: (view) => (view.get("namespaces", "team") !== undefined ? "the namespace is still there" : leftOf(view)),
};

function leftOf(view: View): string | undefined {
  const folders = ["pods", "deployments", "replicasets", "jobs", "configmaps"];
  const left = folders.flatMap((folder) => view.all(folder)).find((object) => object.metadata.namespace === "team");
  return left === undefined ? undefined : `${left.kind} ${left.metadata.name} is left of the namespace`;
}
