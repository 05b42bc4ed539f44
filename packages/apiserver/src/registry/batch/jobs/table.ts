import { humanDuration, parseTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Job } from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";
import { age, ageColumn, containerCells, nameColumn, selectorText, tableOf, text, wide } from "../../cells.ts";
import type { Ages } from "../../generic/strategy.ts";

export const jobTable = tableOf<Job>(
  [
    nameColumn,
    text(
      "Completions",
      "Specifies the desired number of successfully finished pods the job should be run with.  Setting to nil means that the success of any pod signals the success of all pods, and allows parallelism to have any positive value.  Setting to 1 means that parallelism is limited to 1 and the success of that pod signals the success of the job. More info: https://kubernetes.io/docs/concepts/workloads/controllers/jobs-run-to-completion/",
    ),
    text("Duration", "Time required to complete the job."),
    ageColumn,
    wide("Containers", "Names of each container in the template."),
    wide("Images", "Images referenced by each container in the template."),
    wide(
      "Selector",
      "A label query over pods that should match the pod count. Normally, the system sets this field for you. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors",
    ),
  ],
  (job, ages) => [
    job.metadata.name ?? "",
    completionsText(job),
    durationText(job, ages),
    age(job, ages),
    ...containerCells(job.spec?.template?.spec?.containers),
    selectorText(job.spec?.selector),
  ],
);

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
