import { daemonSets } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { isReady } from "../invariants/view.ts";
import { allFaults, lasting, namespace, type Plan, podTemplate } from "./plan.ts";

const labels = { app: "agent" };

/** A DaemonSet is rolled out: in the end there is one Pod of the last template on each node. */
export const daemonSetPlan: Plan = {
  name: "daemonset",
  controllers: ["podgc", "daemonset"],
  faults: allFaults,
  rules: lasting,
  async act(user) {
    await user.create(daemonSets, {
      metadata: { name: "agent", namespace },
      spec: { selector: { matchLabels: labels }, template: podTemplate(labels) },
    });
    for (let turn = 0; turn < (user.isSmall ? 1 : 2); turn++) {
      await user.pause(user.random() * 10_000);
      await user.change(daemonSets, "agent", ({ spec }) => {
        spec.template.spec.containers[0].image = `app:${turn + 2}`;
      });
    }
  },
  missing(view) {
    const set = view.get("daemonsets", `${namespace}/agent`);
    if (set === undefined) return "the DaemonSet is gone";
    const image = set.spec.template.spec.containers[0].image;
    for (const { metadata } of view.all("minions")) {
      const there = view.all("pods").filter(({ spec }) => spec.nodeName === metadata.name);
      if (there.length !== 1) return `${metadata.name} has ${there.length} pods`;
      if (!there.every(isReady)) return `the pod on ${metadata.name} is not ready`;
      if (there[0]?.spec.containers[0].image !== image) return `the pod on ${metadata.name} is of an old revision`;
    }
    const { numberReady, updatedNumberScheduled, observedGeneration } = set.status;
    const nodes = view.all("minions").length;
    if (numberReady !== nodes || updatedNumberScheduled !== nodes || observedGeneration !== set.metadata.generation)
      return `the status says ${JSON.stringify(set.status)}`;
    return undefined;
  },
};
