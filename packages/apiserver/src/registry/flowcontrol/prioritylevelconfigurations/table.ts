import type { PriorityLevelConfiguration } from "@coxswain/apimachinery/objects/schema/kinds/flowcontrol/v1beta2";
import { age, tableOf } from "../../cells.ts";

export const priorityLevelTable = tableOf<PriorityLevelConfiguration>("prioritylevelconfigurations", (level, ages) => {
  const limited = level.spec?.limited;
  const queuing = limited?.limitResponse?.queuing;
  return [
    level.metadata.name ?? "",
    level.spec?.type ?? "",
    limited ? (limited.assuredConcurrencyShares ?? 0) : "<none>",
    queuing?.queues ?? "<none>",
    queuing?.handSize ?? "<none>",
    queuing?.queueLengthLimit ?? "<none>",
    age(level, ages),
  ];
});
