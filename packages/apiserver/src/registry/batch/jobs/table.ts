import { humanDuration, parseTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Job } from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";
import { age, containerCells, selectorText, tableOf } from "../../cells.ts";
import type { Ages } from "../../generic/strategy.ts";

export const jobTable = tableOf<Job>("jobs", (job, ages) => [
  job.metadata.name ?? "",
  completionsText(job),
  durationText(job, ages),
  age(job, ages),
  ...containerCells(job.spec?.template?.spec?.containers),
  selectorText(job.spec?.selector),
]);

function completionsText(job: Job): string {
  const succeeded = job.status?.succeeded ?? 0;
  if (job.spec?.completions != null) return `${succeeded}/${job.spec.completions}`;
  const parallelism = job.spec?.parallelism ?? 0;
  return parallelism > 1 ? `${succeeded}/1 of ${parallelism}` : `${succeeded}/1`;
}

function durationText(job: Job, ages: Ages): string {
  const start = job.status?.startTime ? parseTime(job.status.startTime) : undefined;
  if (start === undefined) return "";
  const end = job.status?.completionTime ? parseTime(job.status.completionTime) : undefined;
  return end === undefined ? ages.since(start) : humanDuration(end - start);
}
