import type { CronJob } from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";
import {
  age,
  ageColumn,
  containerCells,
  flag,
  integer,
  nameColumn,
  selectorText,
  since,
  tableOf,
  text,
  wide,
} from "../../cells.ts";

export const cronJobTable = tableOf<CronJob>(
  [
    nameColumn,
    text("Schedule", "The schedule in Cron format, see https://en.wikipedia.org/wiki/Cron."),
    flag(
      "Suspend",
      "This flag tells the controller to suspend subsequent executions, it does not apply to already started executions.  Defaults to false.",
    ),
    integer("Active", "A list of pointers to currently running jobs."),
    text("Last Schedule", "Information when was the last time the job was successfully scheduled."),
    ageColumn,
    wide("Containers", "Names of each container in the template."),
    wide("Images", "Images referenced by each container in the template."),
    wide(
      "Selector",
      "A label query over pods that should match the pod count. Normally, the system sets this field for you. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors",
    ),
  ],
  (cronJob, ages) => {
    const { spec, status } = cronJob;
    return [
      cronJob.metadata.name ?? "",
      spec?.schedule ?? "",
      spec?.suspend === undefined ? "<unset>" : spec.suspend ? "True" : "False",
      status?.active?.length ?? 0,
      status?.lastScheduleTime ? since(status.lastScheduleTime, ages) : "<none>",
      age(cronJob, ages),
      ...containerCells(spec?.jobTemplate?.spec?.template?.spec?.containers),
      selectorText(spec?.jobTemplate?.spec?.selector),
    ];
  },
);
