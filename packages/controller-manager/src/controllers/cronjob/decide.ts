import { parseSchedule } from "@coxswain/apimachinery/cron/parse";
import type { Schedule } from "@coxswain/apimachinery/cron/schedule";
import { messageOf } from "@coxswain/apimachinery/errors/message";
import { goQuote } from "@coxswain/apimachinery/meta/go-quote";
import { parseTime } from "@coxswain/apimachinery/meta/time";
import type { CronJob } from "@coxswain/apimachinery/schema/kinds/batch/v1";
import { type Due, lastDue, untilNextMs } from "./due.ts";

export type Told = readonly [type: "Normal" | "Warning", reason: string, message: string];

/** What is to happen with a CronJob now. */
export interface Decision {
  /** Start the Job of this time, in ms. */
  readonly start?: number;
  /** Without: when its time comes, look again; suspended or unreadable, it is looked at when it changes. */
  readonly schedule?: Schedule;
  readonly events: readonly Told[];
}

/** So many missed times are a sign that something is wrong. */
const tooManyMissed = 100;

/**
 * Pure: whether a Job is to be started.
 * @param cronJob with only those in `status.active` that still run
 * Source: pkg/controller/cronjob/cronjob_controllerv2.go, syncCronJob
 */
export function decide(cronJob: CronJob, now: number): Decision {
  const { metadata, spec, status } = cronJob;
  const events: Told[] = [];
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
  const wait: Decision = { schedule, events };
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

/** The same for each time: making it again finds it there. */
export function jobName({ metadata }: CronJob, time: number): string {
  return `${metadata.name}-${Math.floor(time / 60_000)}`;
}

/** A changed schedule: when to look next. @throws Error when it cannot be read */
export function untilNextOf(cronJob: CronJob, now: number): number | undefined {
  return untilNextMs(cronJob, parseSchedule(cronJob.spec.schedule), now);
}

const alreadyActiveText = "Not starting job because prior execution is running and concurrency policy is Forbid";

function unsupportedZone(schedule: string): string {
  return `CRON_TZ or TZ used in schedule ${goQuote(schedule)} is not officially supported, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details`;
}

function tooManyText(missed: number): string {
  return `too many missed start times: ${missed}. Set or decrease .spec.startingDeadlineSeconds or check clock skew`;
}
