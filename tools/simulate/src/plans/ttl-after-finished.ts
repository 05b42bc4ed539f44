import { jobs } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Stored } from "../invariants/view.ts";
import { allFaults, lasting, namespace, type Plan, podTemplate } from "./plan.ts";

/** Of two Jobs, the one with a TTL is deleted with its Pods when that has passed after its end, and not before; the other one stays. */
export const ttlAfterFinishedPlan: Plan = {
  name: "ttl-after-finished",
  isLong: true,
  controllers: ["podgc", "job", "ttl-after-finished", "garbagecollector"],
  faults: allFaults,
  rules: (random) => ({
    ...lasting(random),
    ends: () => ({ afterMs: 200 + Math.floor(random() * 3_000), phase: "Succeeded" }),
  }),
  restMs: 600_000,
  async act(user) {
    const spec = { backoffLimit: 100, template: podTemplate({}, "app:1", "Never") };
    await user.create(jobs, { metadata: { name: "kept", namespace }, spec });
    const ttlSecondsAfterFinished = Math.floor(user.random() * 8);
    await user.create(jobs, { metadata: { name: "passing", namespace }, spec: { ...spec, ttlSecondsAfterFinished } });
    await user.pause(user.random() * 15_000);
  },
  deleted: ({ kind, metadata, status }) =>
    kind === "Job" && (metadata.name === "kept" || !isFinished({ status }))
      ? `the Job ${metadata.name} is deleted: ${JSON.stringify(status)}`
      : undefined,
  missing(view) {
    const left = view.all("jobs");
    const [kept] = left;
    if (left.length !== 1 || kept?.metadata.name !== "kept") return `${left.length} Jobs, one is kept`;
    if (!isFinished(kept)) return `the Job is not complete: ${JSON.stringify(kept.status)}`;
    const pods = view.all("pods").filter(({ metadata }) => metadata.ownerReferences?.[0]?.uid !== kept.metadata.uid);
    return pods.length === 0 ? undefined : `the pod ${pods[0]?.metadata.name} is left of the Job that is gone`;
  },
};

const isFinished = ({ status }: Pick<Stored, "status">): boolean =>
  (status?.conditions ?? []).some((c: { type: string; status: string }) => c.type === "Complete" && c.status === "True");
