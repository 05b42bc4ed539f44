import type { Job, JobSpec, JobStatus } from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { jobs, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { newJobController } from "../controllers/job/controller.ts";
import { newTestContext } from "./test-context.ts";

/** Runs the job controller with one Job, with helpers to change its Pods. */
export async function runJob(t: Parameters<typeof newTestContext>[0], job: Job, gates: Record<string, boolean> = {}) {
  const context = newTestContext(t, {}, gates);
  const { client, ctx, run } = context;
  client.put(jobs, job);
  const current = (): Job => client.object<Job>(jobs, "default/work") as Job;
  const podsNow = (): Pod[] => client.objects<Pod>(pods);
  const active = (): Pod[] =>
    podsNow().filter(
      ({ metadata, status }) => !metadata.deletionTimestamp && !["Succeeded", "Failed"].includes(status?.phase ?? ""),
    );
  await run(newJobController(ctx));
  return {
    ...context,
    current,
    podsNow,
    active,
    status: (): JobStatus => current().status ?? {},
    condition: (type: string) => current().status?.conditions?.find((condition) => condition.type === type),
    /** Sets the phase of the first `count` active Pods. */
    async end(phase: string, count = 1) {
      for (const pod of active().slice(0, count)) client.put(pods, { ...pod, status: { ...pod.status, phase } });
      await settle(30);
    },
    async change(spec: Partial<JobSpec>) {
      client.put(jobs, { ...current(), spec: { ...current().spec, ...spec } });
      await settle(30);
    },
    counted: async (name: string, labels: string) => {
      const text = await ctx.registry.render();
      return Number(new RegExp(`^${name}\\{${labels}\\} (.*)$`, "m").exec(text)?.[1] ?? 0);
    },
  };
}
