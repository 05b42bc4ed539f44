import { daemonSets, nodes, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { isReady, type Stored } from "../invariants/view.ts";
import { allFaults, lasting, namespace, type Plan, podTemplate, type User } from "./plan.ts";

const labels = { app: "agent" };

const strategies = [
  { type: "RollingUpdate" },
  { type: "RollingUpdate", rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
  { type: "RollingUpdate", rollingUpdate: { maxUnavailable: "100%" } },
  { type: "OnDelete" },
] as const;

/** Annotation of a set with OnDelete: uids of the pods of an earlier template, which stay. */
const keptAnnotation = "simulated/kept";

/** A DaemonSet is rolled out: in the end there is one Pod on each node, of the last template unless it waits for deletions. */
export const daemonSetPlan: Plan = {
  name: "daemonset",
  controllers: ["podgc", "daemonset"],
  faults: allFaults,
  rules: lasting,
  async act(user) {
    const updateStrategy = strategies[Math.floor(user.random() * strategies.length)]!;
    await user.create(daemonSets, {
      metadata: { name: "agent", namespace },
      spec: { selector: { matchLabels: labels }, template: podTemplate(labels), updateStrategy },
    });
    for (let turn = 0; turn < (user.isSmall ? 1 : 2); turn++) {
      await user.pause(user.random() * 10_000);
      const kept = updateStrategy.type === "OnDelete" ? await readyOnEachNode(user) : undefined;
      await user.change(daemonSets, "agent", ({ metadata, spec }) => {
        spec.template.spec.containers[0].image = `app:${turn + 2}`;
        if (kept !== undefined) metadata.annotations = { ...metadata.annotations, [keptAnnotation]: kept.join() };
      });
    }
  },
  missing(view) {
    const set = view.get("daemonsets", `${namespace}/agent`);
    if (set === undefined) return "the DaemonSet is gone";
    const image = set.spec.template.spec.containers[0].image;
    const isOld = (pod: Stored | undefined): boolean => pod?.spec.containers[0].image !== image;
    const waits = set.spec.updateStrategy.type === "OnDelete";
    let updated = 0;
    for (const { metadata } of view.all("minions")) {
      const there = view.all("pods").filter(({ spec }) => spec.nodeName === metadata.name);
      if (there.length !== 1) return `${metadata.name} has ${there.length} pods`;
      if (!there.every(isReady)) return `the pod on ${metadata.name} is not ready`;
      if (isOld(there[0]) && !waits) return `the pod on ${metadata.name} is of an old revision`;
      if (!isOld(there[0])) updated++;
    }
    const uids = new Set(view.all("pods").map(({ metadata }) => metadata.uid));
    const kept = set.metadata.annotations?.[keptAnnotation]?.split(",") ?? [];
    if (!kept.every((uid) => uids.has(uid))) return "a pod of an earlier template was replaced, and nobody had deleted it";
    const { numberReady, updatedNumberScheduled = 0, observedGeneration } = set.status;
    const wanted = view.all("minions").length;
    if (numberReady !== wanted || updatedNumberScheduled !== updated || observedGeneration !== set.metadata.generation)
      return `the status says ${JSON.stringify(set.status)}`;
    return undefined;
  },
};

/** The uids of all pods when these are ready, one on each node; undefined otherwise. */
async function readyOnEachNode({ client }: User): Promise<string[] | undefined> {
  try {
    const there = await client.list<Stored>(nodes);
    const { items } = await client.list<Stored>(pods, { namespace });
    const used = new Set(items.filter(isReady).map(({ spec }) => spec.nodeName));
    return items.length === there.items.length && used.size === items.length
      ? items.map(({ metadata }) => metadata.uid ?? "")
      : undefined;
  } catch {
    return undefined; // its request or the response was lost
  }
}
