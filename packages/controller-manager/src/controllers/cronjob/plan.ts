import { parseSchedule } from "@coxswain/apimachinery/cron/parse";
import type { Schedule } from "@coxswain/apimachinery/cron/schedule";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";
import { parseTime } from "@coxswain/apimachinery/objects/meta/time";
import type { CronJob } from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";
import { type Due, lastDue, untilNextMs } from "./schedule-times.ts";

export type PendingEvent = readonly [type: "Normal" | "Warning", reason: string, message: string];

/** Action for a CronJob at the current time. */
interface CronJobPlan {
  /** Scheduled time of the Job to create, in ms since the epoch. */
  readonly start?: number;
  /**
   * Schedule used to requeue at the next time; undefined when suspended, being deleted or invalid, in which case only
   * a change requeues.
   */
  readonly schedule?: Schedule;
  readonly events: readonly PendingEvent[];
}

/** Number of missed times above which a warning Event is recorded. */
const tooManyMissed = 100;

/**
 * Pure: decides whether to create a Job.
 * @param cronJob `status.active` must contain only Jobs that are not finished
 * Source: pkg/controller/cronjob/cronjob_controllerv2.go, syncCronJob
 */
export function planCronJob(cronJob: CronJob, now: number): CronJobPlan {
  const { metadata, spec, status } = cronJob;
  const events: PendingEvent[] = [];
  if (metadata.deletionTimestamp || spec.suspend === true) return { events };
  let schedule: Schedule;
  try {
    schedule = parseSchedule(spec.schedule);
  } catch (err) {
    const message = `unparseable schedule: ${goQuote(spec.schedule)} : ${messageOf(err)}`;
    return { events: [["Warning", "UnparseableSchedule", message]] };
  }
  if (spec.schedule.includes("TZ")) events.push(["Warning", "UnsupportedSchedule", unsupportedZone(spec.schedule)]);
  let due: Due;
  try {
    due = lastDue(cronJob, schedule, now);
  } catch (err) {
    return { events: [...events, ["Warning", "InvalidSchedule", `invalid schedule: ${spec.schedule} : ${messageOf(err)}`]] };
  }
  if (due.missed > tooManyMissed) events.push(["Warning", "TooManyMissedTimes", tooManyText(due.missed)]);
  const wait: CronJobPlan = { schedule, events };
  const { time } = due;
  if (time === undefined) return wait;

  const active = status?.active ?? [];
  const last = status?.lastScheduleTime ? parseTime(status.lastScheduleTime) : undefined;
  if (last === time || active.some(({ name }) => name === jobName(cronJob, time))) return wait;
  if (spec.concurrencyPolicy === "Forbid" && active.length > 0) {
    return { schedule, events: [...events, ["Normal", "JobAlreadyActive", alreadyActiveText]] };
  }
  return { schedule, events, start: time };
}

/** Deterministic name for a scheduled time, so that a repeated creation fails with AlreadyExists. */
export function jobName({ metadata }: CronJob, time: number): string {
  return `${metadata.name}-${Math.floor(time / 60_000)}`;
}

/**
 * Delay in ms until the next time of a changed schedule.
 * @throws Error when the schedule cannot be parsed
 */
export function untilNextScheduled(cronJob: CronJob, now: number): number | undefined {
  return untilNextMs(cronJob, parseSchedule(cronJob.spec.schedule), now);
}

const alreadyActiveText = "Not starting job because prior execution is running and concurrency policy is Forbid";

function unsupportedZone(schedule: string): string {
  return `CRON_TZ or TZ used in schedule ${goQuote(schedule)} is not officially supported, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details`;
}

function tooManyText(missed: number): string {
  return `too many missed start times: ${missed}. Set or decrease .spec.startingDeadlineSeconds or check clock skew`;
}
