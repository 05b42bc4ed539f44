import { formatTime, parseTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Job, JobCondition, JobStatus } from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";

/** A Job condition and the Event that is recorded when it is set. */
export interface ConditionWithEvent {
  readonly condition: Omit<JobCondition, "lastProbeTime" | "lastTransitionTime">;
  readonly event: readonly ["Normal" | "Warning", reason: string, message: string];
}

const withEvent = (
  type: string,
  status: "True" | "False",
  [reason, message]: readonly [string, string],
  event: ConditionWithEvent["event"],
): ConditionWithEvent => ({ condition: { type, status, ...(reason !== "" && { reason, message }) }, event });

const failed = (reason: string, message: string): ConditionWithEvent =>
  withEvent("Failed", "True", [reason, message], ["Warning", reason, message]);

/** Source: pkg/controller/job/job_controller.go, syncJob */
export const complete = withEvent("Complete", "True", ["", ""], ["Normal", "Completed", "Job completed"]);
export const backoffLimitExceeded = failed("BackoffLimitExceeded", "Job has reached the specified backoff limit");
export const deadlineExceeded = failed("DeadlineExceeded", "Job was active longer than specified deadline");
export const suspended = withEvent(
  "Suspended",
  "True",
  ["JobSuspended", "Job suspended"],
  ["Normal", "Suspended", "Job suspended"],
);
export const resumed = withEvent("Suspended", "False", ["JobResumed", "Job resumed"], ["Normal", "Resumed", "Job resumed"]);

/**
 * Returns the status with the condition of the same type added or replaced.
 * @returns `status` itself when the condition is already as wanted, or when it would be added with status False
 */
export function withCondition(status: JobStatus, { condition }: ConditionWithEvent, now: number): JobStatus {
  const conditions = status.conditions ?? [];
  const index = conditions.findIndex(({ type }) => type === condition.type);
  if (index < 0 && condition.status === "False") return status;
  const before = conditions[index];
  const { reason = "", message = "" } = condition;
  if (before?.status === condition.status && (before.reason ?? "") === reason && (before.message ?? "") === message)
    return status;
  const time = formatTime(now);
  const stamped: JobCondition = { ...condition, lastProbeTime: time, lastTransitionTime: time };
  return { ...status, conditions: index < 0 ? [...conditions, stamped] : conditions.with(index, stamped) };
}

export function isSuspended({ conditions }: JobStatus): boolean {
  return conditions?.some(({ type, status }) => type === "Suspended" && status === "True") === true;
}

/**
 * Whether the container restarts of Pods with restartPolicy OnFailure have reached `spec.backoffLimit`.
 * Source: pastBackoffLimitOnFailure
 */
export function tooManyRestarts({ spec }: Job, pods: readonly Pod[]): boolean {
  if (spec.template.spec?.restartPolicy !== "OnFailure") return false;
  const running = pods.filter(({ status }) => status?.phase === "Running" || status?.phase === "Pending");
  const restarts = running
    .flatMap(({ status }) => [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])])
    .reduce((sum, { restartCount }) => sum + restartCount, 0);
  const limit = spec.backoffLimit ?? defaultBackoffLimit;
  return limit === 0 ? restarts > 0 : restarts >= limit;
}

export const defaultBackoffLimit = 6;

/**
 * Time in ms until `spec.activeDeadlineSeconds` expires: negative when it has expired, undefined when the Job is
 * suspended, has not started or has no deadline.
 */
export function remainingMs({ spec }: Job, startTime: string | null | undefined, now: number): number | undefined {
  const start = startTime ? parseTime(startTime) : undefined;
  if (spec.activeDeadlineSeconds == null || start === undefined || spec.suspend === true) return undefined;
  return start + Number(spec.activeDeadlineSeconds) * 1000 - now; // an int64
}
