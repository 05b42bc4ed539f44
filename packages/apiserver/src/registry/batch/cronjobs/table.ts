import type { CronJob } from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";
import { age, containerCells, selectorText, since, tableOf } from "../../cells.ts";

export const cronJobTable = tableOf<CronJob>("cronjobs", (cronJob, ages) => {
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
});
