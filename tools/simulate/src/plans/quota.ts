import { deployments, pods, resourceQuotas } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { FaultKind } from "../faults/strikes.ts";
import { isReady, type Stored } from "../invariants/view.ts";
import { lasting, namespace, type Plan, podTemplate } from "./plan.ts";

const labels = { app: "web" };
const most = 3;

/** State of the quota after a change. */
interface QuotaState {
  readonly used: number;
  readonly uids: ReadonlySet<string>;
  /** Pods that admission has charged and that are not stored yet. */
  readonly charged: number;
  /** Number of Pods above the quota that recounts can have admitted. */
  readonly allowance: number;
}
const nothingYet: QuotaState = { used: 0, uids: new Set(), charged: 0, allowance: 0 };

/** Without faults of stale reads: a recount from a stale cache overwrites what admission has charged, in Kubernetes too. */
const faults: readonly FaultKind[] = ["lose-answers", "lose-requests", "break-watches", "crash", "compact", "skew"];

/** A Deployment wants more Pods than the quota allows: there are never more than allowed. */
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
      spec: { replicas: user.isSmall ? 4 : 5, selector: { matchLabels: labels }, template: podTemplate(labels) },
    });
    await user.pause(user.random() * 10_000);
    await user.change(deployments, "web", ({ spec }) => {
      spec.template.spec.containers[0].image = "app:2";
    });
    await user.pause(user.random() * 10_000);
    // A replacement fits into the quota only when the deleted Pod is no longer counted.
    const { items } = await user.client.list<Stored>(pods, { namespace }).catch(() => ({ items: [] }));
    for (const { metadata } of items.slice(0, 1)) await user.remove(pods, metadata.name ?? "");
  },
  /**
   * Admission charges a Pod before it is stored. A recount from a cache, in between, removes the charge (in Kubernetes, too), and so may
   * admit as many additional Pods as were charged and not stored, or stored and not counted, at that moment.
   */
  always(view, memory) {
    const quota = view.get("resourcequotas", `${namespace}/pods`);
    if (quota?.status?.hard === undefined) return undefined;
    const counted = view.all("pods").filter(({ status }) => status?.phase !== "Succeeded" && status?.phase !== "Failed");
    const used = Number(quota.status.used?.pods ?? 0);
    // Until the controller has written its status, a quota limits nothing (in Kubernetes, too): what was made until then, or is being made, stays.
    const before = counted.length > 0 ? { ...nothingYet, allowance: Number.POSITIVE_INFINITY } : nothingYet;
    const known = (memory.get("quota") ?? before) as QuotaState; // cast: this invariant alone writes the key
    const uids = new Set(counted.map(({ metadata }) => metadata.uid ?? ""));
    const stored = [...uids].filter((uid) => !known.uids.has(uid)).length;
    const change = used - known.used;
    const state: QuotaState = {
      used,
      uids,
      // A recount that lowers the usage drops charges of Pods that are not stored.
      charged: change < 0 ? 0 : Math.max(0, known.charged + change - stored),
      allowance: known.allowance + (change < 0 ? known.charged + Math.max(0, counted.length - used) : 0),
    };
    memory.set("quota", state);
    const allowed = most + state.allowance;
    return counted.length > allowed ? `${counted.length} pods, the quota allows ${most}` : undefined;
  },
  missing(view) {
    const there = view.all("pods");
    // Pods above the limit are within the allowance of `always` and are not removed.
    if (there.length < most || !there.every(isReady))
      return `${there.length} pods, expected: ${most} ready ones, as the quota allows`;
    const used = view.get("resourcequotas", `${namespace}/pods`)?.status?.used?.pods;
    return used === String(there.length) ? undefined : `the quota's status says ${used}`;
  },
};
