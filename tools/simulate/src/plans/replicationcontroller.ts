import { pods, replicationControllers } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { isReady, type Stored } from "../invariants/view.ts";
import { allFaults, lasting, namespace, type Plan, podTemplate } from "./plan.ts";

const labels = { app: "web" };

/** A ReplicationController is scaled, and one of its Pods deleted. */
export const replicationControllerPlan: Plan = {
  name: "replicationcontroller",
  controllers: ["podgc", "replicationcontroller"],
  faults: allFaults,
  rules: lasting,
  async act(user) {
    await user.create(replicationControllers, {
      metadata: { name: "web", namespace },
      spec: { replicas: 2, selector: labels, template: podTemplate(labels) },
    });
    await user.pause(user.random() * 8_000);
    const replicas = Math.floor(user.random() * 4);
    await user.change(replicationControllers, "web", ({ spec }) => {
      spec.replicas = replicas;
    });
    const { items } = await user.client.list<Stored>(pods, { namespace }).catch(() => ({ items: [] }));
    for (const { metadata } of items.slice(0, 1)) await user.remove(pods, metadata.name ?? "");
    await user.pause(user.random() * 5_000);
  },
  missing(view) {
    const { spec, status, metadata } = view.get("controllers", `${namespace}/web`) ?? {};
    if (metadata === undefined) return "the ReplicationController is gone";
    const there = view.all("pods");
    if (there.length !== spec.replicas || !there.every(isReady)) return `${there.length} pods, ${spec.replicas} are wanted`;
    const { replicas = 0, readyReplicas = 0, observedGeneration } = status ?? {};
    return replicas === spec.replicas && readyReplicas === replicas && observedGeneration === metadata.generation
      ? undefined
      : `the status says ${JSON.stringify(status)}`;
  },
};
