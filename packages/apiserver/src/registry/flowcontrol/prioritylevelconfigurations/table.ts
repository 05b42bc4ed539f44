import type { PriorityLevelConfiguration } from "@coxswain/apimachinery/objects/schema/kinds/flowcontrol/v1beta2";
import { age, ageColumn, nameColumn, tableOf, text } from "../../cells.ts";

export const priorityLevelTable = tableOf<PriorityLevelConfiguration>(
  [
    nameColumn,
    text("Type", "`type` indicates whether this priority level is subject to limitation on request execution."),
    text(
      "AssuredConcurrencyShares",
      "`assuredConcurrencyShares` (ACS) configures the execution limit, which is a limit on the number of requests of this priority level that may be executing at a given time.",
    ),
    text("Queues", "`queues` is the number of queues for this priority level."),
    text("HandSize", "`handSize` is a small positive number that configures the shuffle sharding of requests into queues."),
    text(
      "QueueLengthLimit",
      "`queueLengthLimit` is the maximum number of requests allowed to be waiting in a given queue of this priority level at a time",
    ),
    ageColumn,
  ],
  (level, ages) => {
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
  },
);
