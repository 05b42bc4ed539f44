import { deployments, podDisruptionBudgets, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { isReady, type Stored } from "../invariants/view.ts";
import { allFaults, lasting, namespace, type Plan, podTemplate } from "./plan.ts";

const labels = { app: "web" };
const replicas = 4;
const least = 3;

/** A user evicts every Pod again and again: the disruption budget is kept. */
export const evictionPlan: Plan = {
  name: "eviction",
  controllers: ["podgc", "deployment", "replicaset", "disruption"],
  apis: ["policy/v1"],
  isLong: true,
  faults: allFaults,
  rules: lasting,
  async act(user) {
    const selector = { matchLabels: labels };
    await user.create(podDisruptionBudgets, { metadata: { name: "web", namespace }, spec: { minAvailable: least, selector } });
    await user.create(deployments, {
      metadata: { name: "web", namespace },
      spec: { replicas, selector, template: podTemplate(labels) },
    });
    await user.pause(4_000);
    for (let turn = 0; turn < (user.isSmall ? 8 : 25); turn++) {
      await user.pause(user.random() * 800);
      try {
        const { items } = await user.client.list<Stored>(pods, { namespace });
        const victim = items[Math.floor(user.random() * items.length)];
        if (victim === undefined) continue;
        const { name = "" } = victim.metadata;
        await user.client.create(pods, { metadata: { name, namespace } }, { name, namespace, subresource: "eviction" });
      } catch {
        // The eviction was refused, or the Pod is gone.
      }
    }
  },
  /** Pods become ready, and only evictions remove them: once enough are ready, enough always are. */
  always(view, memory) {
    const ready = view.all("pods").filter(isReady).length;
    if (ready >= least) memory.set("enough", true);
    return memory.has("enough") && ready < least ? `${ready} pods are ready, the budget wants ${least}` : undefined;
  },
  missing(view) {
    const ready = view.all("pods").filter(isReady).length;
    const left = view.all("pods").find((pod) => !isReady(pod));
    if (left !== undefined)
      return `${left.metadata.name} is not ready: ${JSON.stringify({ ...left.metadata, managedFields: 0, spec: left.spec.nodeName, status: left.status })}`;
    if (ready !== replicas) return `${ready} pods are ready, ${replicas} are wanted`;
    const { status } = view.get("poddisruptionbudgets", `${namespace}/web`) ?? {};
    return status?.currentHealthy === replicas ? undefined : `the budget's status says ${JSON.stringify(status)}`;
  },
};
