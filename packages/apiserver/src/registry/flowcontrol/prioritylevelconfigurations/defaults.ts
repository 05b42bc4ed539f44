import type { PriorityLevelConfiguration } from "@coxswain/apimachinery/objects/schema/kinds/flowcontrol/v1beta2";

/** Source: pkg/apis/flowcontrol/v1beta2/defaults.go */
export function defaultPriorityLevel(object: PriorityLevelConfiguration): void {
  const limited = object.spec?.limited;
  if (!limited) return;
  limited.assuredConcurrencyShares ||= 30;
  const queuing = limited.limitResponse?.queuing;
  if (!queuing) return;
  queuing.handSize ||= 8;
  queuing.queues ||= 64;
  queuing.queueLengthLimit ||= 50;
}
