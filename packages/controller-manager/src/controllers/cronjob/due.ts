import type { Schedule } from "@coxswain/apimachinery/cron/schedule";
import { parseTime } from "@coxswain/apimachinery/meta/time";
import type { CronJob } from "@coxswain/apimachinery/schema/kinds/batch/v1";

/** When a CronJob should have started a Job, and when it should next. Times are in ms. Source: pkg/controller/cronjob/utils.go */
export interface Due {
  /** The latest; undefined when nothing is due yet. */
  readonly time: number | undefined;
  /** How often it was due since the last Job, this time included. */
  readonly missed: number;
}

/**
 * What is due of a CronJob: since its last Job (or since it was made), but nothing older than its starting deadline.
 * @throws Error for a schedule that never comes
 */
export function lastDue(cronJob: CronJob, schedule: Schedule, now: number): Due {
  const { startingDeadlineSeconds } = cronJob.spec;
  const oldest = startingDeadlineSeconds == null ? -Infinity : now - Number(startingDeadlineSeconds) * 1000; // of 64 bits
  const since = Math.max(lastKnown(cronJob), oldest);
  return since > now ? { time: undefined, missed: 0 } : mostRecent(schedule, since, now);
}

/** How long until it is due next; undefined when it never is. */
export function untilNextMs(cronJob: CronJob, schedule: Schedule, now: number): number | undefined {
  // From the last time on, for schedules such as `@every 1h` that count from there.
  const next = schedule.next(lastOf(cronJob, schedule, now));
  const due = next !== undefined && next > now ? next : schedule.next(now);
  return due === undefined ? undefined : due + marginMs - now;
}

/** Clocks are set back a little now and then: not to be there too early. Source: nextScheduleDelta */
const marginMs = 100;

function lastOf(cronJob: CronJob, schedule: Schedule, now: number): number {
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

/** Reckons with times as far apart as the first two are: after a long outage all of them would be too many to go through. */
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
