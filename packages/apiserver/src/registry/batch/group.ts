import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";
import { inGroup } from "../definition.ts";
import type { ResourceDefinition } from "../generic/resource.ts";
import { defaultCronJob } from "./cronjobs/defaults.ts";
import { cronJobStatusStrategy, cronJobStrategy } from "./cronjobs/strategy.ts";
import { cronJobTable } from "./cronjobs/table.ts";
import { defaultJob } from "./jobs/defaults.ts";
import { jobStatusStrategy, jobStrategy } from "./jobs/strategy.ts";
import { jobTable } from "./jobs/table.ts";

// biome-ignore lint/suspicious/noExplicitAny: one field of one kind.
type Any = any;

export function batchResources(): ResourceDefinition[] {
  return inGroup("batch", [
    {
      resource: "cronjobs",
      kind: "CronJob",
      shortNames: ["cj"],
      categories: ["all"],
      namespaced: true,
      versions: [
        { version: "v1", defaults: defaultCronJob },
        {
          version: "v1beta1",
          defaults: defaultCronJob,
          deprecation: "batch/v1beta1 CronJob is deprecated in v1.21+, unavailable in v1.25+; use batch/v1 CronJob",
        },
      ],
      // Upstream 1.23 stores v1, which API servers of 1.20 cannot read. v1beta1 allows a downgrade and a shared etcd.
      storage: { group: "batch", version: "v1beta1" },
      strategy: cronJobStrategy,
      statusStrategy: cronJobStatusStrategy,
      table: cronJobTable,
    },
    {
      resource: "jobs",
      kind: "Job",
      categories: ["all"],
      namespaced: true,
      versions: [{ version: "v1", defaults: defaultJob }],
      strategy: jobStrategy,
      statusStrategy: jobStatusStrategy,
      selectableFields: (object: Any) => ({ "status.successful": String(object.status?.succeeded ?? 0) }),
      unknownFieldText: (field) => `field label ${goQuote(field)} not supported for batchv1.Job`,
      table: jobTable,
    },
  ]);
}
