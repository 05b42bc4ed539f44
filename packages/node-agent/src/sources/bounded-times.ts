import { deepClone } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { containersOf, type NodePod } from "../pod/pod.ts";

const mostSeconds = 1e9;

/**
 * Limits durations in seconds. The API allows any int64 (decoded as bigint), which overflows timers and arithmetic here and
 * in the runtime.
 * @returns the same object when all durations are within the limit of about thirty years
 */
export function withBoundedTimes(pod: NodePod): NodePod {
  if (!timesOf(pod).some(isLong)) return pod;
  const bounded = deepClone(pod);
  for (const { holder, field } of timesOf(bounded).filter(isLong)) holder[field] = Math.sign(Number(holder[field])) * mostSeconds;
  return bounded;
}

interface Time {
  readonly holder: Record<string, unknown>;
  readonly field: string;
}

function isLong({ holder, field }: Time): boolean {
  return Math.abs(Number(holder[field] ?? 0)) > mostSeconds;
}

function timesOf(pod: NodePod): Time[] {
  const own = (holder: object | undefined, field: string): Time[] =>
    holder === undefined ? [] : [{ holder: holder as Record<string, unknown>, field }];
  return [
    ...own(pod.metadata, "deletionGracePeriodSeconds"),
    ...own(pod.spec, "terminationGracePeriodSeconds"),
    ...own(pod.spec, "activeDeadlineSeconds"),
    ...containersOf(pod).flatMap(({ container: { livenessProbe, startupProbe } }) =>
      [livenessProbe, startupProbe].flatMap((probe) => own(probe, "terminationGracePeriodSeconds")),
    ),
  ];
}
