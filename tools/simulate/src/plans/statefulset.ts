import { statefulSets } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { isReady } from "../invariants/view.ts";
import { allFaults, lasting, namespace, type Plan, podTemplate } from "./plan.ts";

const labels = { app: "db" };

/** A StatefulSet is scaled and rolled out; at most one Pod of each name runs at a time. */
export const statefulSetPlan: Plan = {
  name: "statefulset",
  controllers: ["podgc", "statefulset"],
  faults: allFaults,
  rules: lasting,
  async act(user) {
    await user.create(statefulSets, {
      metadata: { name: "db", namespace },
      spec: {
        replicas: 2,
        serviceName: "db",
        podManagementPolicy: user.random() < 0.5 ? "Parallel" : "OrderedReady",
        selector: { matchLabels: labels },
        template: podTemplate(labels),
      },
    });
    for (let turn = 0; turn < (user.isSmall ? 1 : 2); turn++) {
      await user.pause(user.random() * 10_000);
      const replicas = Math.floor(user.random() * 4);
      const isRollout = user.random() < 0.5;
      await user.change(statefulSets, "db", ({ spec }) => {
        if (isRollout) spec.template.spec.containers[0].image = `app:${turn + 2}`;
        else spec.replicas = replicas;
      });
    }
  },
  missing(view) {
    const set = view.get("statefulsets", `${namespace}/db`);
    if (set === undefined) return "the StatefulSet is gone";
    const { spec, status = {}, metadata } = set;
    if (status.observedGeneration !== metadata.generation) return `generation ${metadata.generation} is not observed`;
    const names = view
      .all("pods")
      .filter(isReady)
      .map((pod) => pod.metadata.name)
      .sort();
    const wanted = Array.from({ length: spec.replicas }, (_, ordinal) => `db-${ordinal}`);
    if (names.join() !== wanted.join() || view.all("pods").length !== wanted.length)
      return `ready are ${names.join()}; wanted ${wanted.join()}`;
    const image = spec.template.spec.containers[0].image;
    const old = view.all("pods").find((pod) => pod.spec.containers[0].image !== image);
    if (old !== undefined) return `${old.metadata.name} is of an old revision`;
    if ((status.replicas ?? 0) !== spec.replicas || (status.readyReplicas ?? 0) !== spec.replicas)
      return `the status says ${JSON.stringify(status)}`;
    return status.currentRevision === status.updateRevision ? undefined : "the rollout is not over";
  },
};
