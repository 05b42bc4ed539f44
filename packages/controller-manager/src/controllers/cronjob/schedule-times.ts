import type { Schedule } from "@coxswain/apimachinery/cron/schedule";
import { parseTime } from "@coxswain/apimachinery/objects/meta/time";
import type { CronJob } from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";

/**
 * Latest scheduled time of a CronJob that has passed. Times are in ms since the epoch.
 * Source: pkg/controller/cronjob/utils.go
 */
export interface Due {
  /** The latest scheduled time that has passed; undefined when none is due. */
  readonly time: number | undefined;
  /** Number of scheduled times since the last Job, including `time`. */
  readonly missed: number;
}

/**
 * Computes what is due since the last Job (or since creation), limited by startingDeadlineSeconds.
 * @throws Error when the schedule has no times or they are less than a second apart
 */
export function lastDue(cronJob: CronJob, schedule: Schedule, now: number): Due {
  const { startingDeadlineSeconds } = cronJob.spec;
  const oldest = startingDeadlineSeconds == null ? -Infinity : now - Number(startingDeadlineSeconds) * 1000; // an int64
  const since = Math.max(lastKnown(cronJob), oldest);
  return since > now ? { time: undefined, missed: 0 } : mostRecent(schedule, since, now);
}

/** Delay in ms until the next scheduled time; undefined when there is none. */
export function untilNextMs(cronJob: CronJob, schedule: Schedule, now: number): number | undefined {
  // Computed from the last scheduled time, because intervals such as `@every 1h` are relative to it.
  const next = schedule.next(lastScheduled(cronJob, schedule, now));
  const due = next !== undefined && next > now ? next : schedule.next(now);
  return due === undefined ? undefined : due + marginMs - now;
}

/** Small margin against clock adjustments, so that the requeue is not too early. Source: nextScheduleDelta */
const marginMs = 100;

function lastScheduled(cronJob: CronJob, schedule: Schedule, now: number): number {
  const since = lastKnown(cronJob);
  try {
    return mostRecent(schedule, since, now).time ?? since;
  } catch {
    return now;
  }
}

function lastKnown({ metadata, status }: CronJob): number {
  return parseTime(status?.lastScheduleTime ?? metadata.creationTimestamp ?? "") ?? 0;
}

/**
 * Extrapolates from the interval between the first two times; enumerating all times after a long outage would be too
 * expensive.
 */
function mostRecent(schedule: Schedule, since: number, now: number): Due {
  const first = schedule.next(since);
  const second = first === undefined ? undefined : schedule.next(first);
  if (first !== undefined && now < first) return { time: undefined, missed: 0 };
  if (first !== undefined && second !== undefined && now < second) return { time: first, missed: 1 };
  const apartMs = second === undefined || first === undefined ? 0 : second - first;
  if (first === undefined || apartMs < 1000) throw new Error("time difference between two schedules less than 1 second");
  const missed = Math.floor((now - first) / apartMs) + 1;
  return { time: first + (missed - 1) * apartMs, missed };
}
