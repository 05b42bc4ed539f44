import { deployments } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { controllerOf, isReady } from "../invariants/view.ts";
import { allFaults, lasting, namespace, type Plan, podTemplate } from "./plan.ts";

const labels = { app: "web" };

/** A Deployment is created, scaled and rolled out, in any order and without waiting for earlier changes. */
export const deploymentPlan: Plan = {
  name: "deployment",
  controllers: ["podgc", "deployment", "replicaset"],
  faults: allFaults,
  rules: lasting,
  async act(user) {
    await user.create(deployments, {
      metadata: { name: "web", namespace },
      spec: {
        replicas: 1 + Math.floor(user.random() * (user.isSmall ? 2 : 3)),
        selector: { matchLabels: labels },
        template: podTemplate(labels),
      },
    });
    for (let turn = 0; turn < (user.isSmall ? 2 : 3); turn++) {
      await user.pause(user.random() * 8_000);
      const isRollout = user.random() < 0.4;
      const replicas = Math.floor(user.random() * (user.isSmall ? 4 : 5));
      await user.change(deployments, "web", ({ spec }) => {
        if (isRollout) spec.template.spec.containers[0].image = `app:${turn + 2}`;
        else spec.replicas = replicas;
      });
    }
  },
  missing(view) {
    const deployment = view.get("deployments", `${namespace}/web`);
    if (deployment === undefined) return "the Deployment is gone";
    const { spec, status = {}, metadata } = deployment;
    const { replicas = 0, updatedReplicas = 0, readyReplicas = 0, observedGeneration } = status;
    if (observedGeneration !== metadata.generation) return `generation ${metadata.generation} is not observed`;
    const sets = view.all("replicasets").filter((set) => controllerOf(set) === metadata.uid);
    const running = sets.filter((set) => set.spec.replicas > 0);
    if (running.length > 1) return `${running.length} ReplicaSets have replicas`;
    const ready = view
      .all("pods")
      .filter((pod) => sets.some((set) => set.metadata.uid === controllerOf(pod)) && isReady(pod)).length;
    if (ready !== spec.replicas) return `${ready} pods are ready, ${spec.replicas} are wanted`;
    if (view.all("pods").length !== spec.replicas)
      return `there are ${view.all("pods").length} pods, ${spec.replicas} are wanted`;
    if (replicas !== spec.replicas || updatedReplicas !== replicas || readyReplicas !== replicas)
      return `the status says ${JSON.stringify(status)}`;
    return undefined;
  },
};
