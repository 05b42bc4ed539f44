import { deployments, pods, resourceQuotas } from "@coxswain/apimachinery/schema/kinds/resources";
import type { FaultKind } from "../faults/faults.ts";
import { isReady, type Stored } from "../invariants/view.ts";
import { lasting, namespace, type Plan, podTemplate } from "./plan.ts";

const labels = { app: "web" };
const most = 3;
/** What lags may count too little, in Kubernetes too: a recount from an old cache is written over what admission has counted. */
const faults: readonly FaultKind[] = ["lose-answers", "lose-requests", "break-watches", "crash", "compact", "skew"];

/** More pods are wanted than a quota allows: never more than that are there. */
export const quotaPlan: Plan = {
  name: "quota",
  controllers: ["podgc", "deployment", "replicaset", "resourcequota"],
  faults,
  rules: lasting,
  async act(user) {
    await user.create(resourceQuotas, { metadata: { name: "pods", namespace }, spec: { hard: { pods: String(most) } } });
    await user.pause(3_000);
    await user.create(deployments, {
      metadata: { name: "web", namespace },
      spec: { replicas: 5, selector: { matchLabels: labels }, template: podTemplate(labels) },
    });
    await user.pause(user.random() * 10_000);
    await user.change(deployments, "web", ({ spec }) => {
      spec.template.spec.containers[0].image = "app:2";
    });
    await user.pause(user.random() * 10_000);
    // Its replacement has room only when it is no longer counted.
    const { items } = await user.client.list<Stored>(pods, { namespace }).catch(() => ({ items: [] }));
    for (const { metadata } of items.slice(0, 1)) await user.remove(pods, metadata.name ?? "");
  },
  /**
   * Admission counts a pod before it is stored. A recount from the pods that are stored, in between, takes it off again (in Kubernetes, too):
   * each time that less is counted may let one more in.
   */
  always(view, memory) {
    const quota = view.get("resourcequotas", `${namespace}/pods`);
    if (quota?.status?.hard === undefined) return undefined;
    const counted = view.all("pods").filter(({ status }) => status?.phase !== "Succeeded" && status?.phase !== "Failed").length;
    const used = Number(quota.status.used?.pods ?? 0);
    const { last = 0, recounts = 0 } = (memory.get("quota") ?? {}) as { last?: number; recounts?: number };
    const known = { last: used, recounts: used < last ? recounts + 1 : recounts };
    memory.set("quota", known);
    return counted > most + known.recounts ? `${counted} pods, the quota allows ${most}` : undefined;
  },
  missing(view) {
    const there = view.all("pods");
    // More than that is what `always` allows: nobody takes it away.
    if (there.length < most || !there.every(isReady)) return `${there.length} pods, ${most} are allowed and wanted`;
    const used = view.get("resourcequotas", `${namespace}/pods`)?.status?.used?.pods;
    return used === String(there.length) ? undefined : `the quota's status says ${used}`;
  },
};
