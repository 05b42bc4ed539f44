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
  for (const time of timesOf(bounded).filter(isLong)) time.set(Math.sign(time.seconds) * mostSeconds);
  return bounded;
}

interface Time {
  readonly seconds: number;
  set(seconds: number): void;
}

function isLong({ seconds }: Time): boolean {
  return Math.abs(seconds) > mostSeconds;
}

function timesOf(pod: NodePod): Time[] {
  const own = <F extends string>(holder: { [field in F]?: number } | undefined, field: F): Time[] =>
    holder === undefined
      ? []
      : [{ seconds: Number(holder[field] ?? 0), set: (seconds) => Object.assign(holder, { [field]: seconds }) }];
  return [
    ...own(pod.metadata, "deletionGracePeriodSeconds"),
    ...own(pod.spec, "terminationGracePeriodSeconds"),
    ...own(pod.spec, "activeDeadlineSeconds"),
    ...containersOf(pod).flatMap(({ container: { livenessProbe, startupProbe } }) =>
      [livenessProbe, startupProbe].flatMap((probe) => own(probe, "terminationGracePeriodSeconds")),
    ),
  ];
}
