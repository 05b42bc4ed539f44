import type { Job, JobCondition } from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";

/** The Complete or Failed condition of a finished Job; undefined while it is not finished. Source: pkg/controller/job/utils.go */
export function finishedConditionOf({ status }: Job): JobCondition | undefined {
  return status?.conditions?.find(({ type, status: holds }) => (type === "Complete" || type === "Failed") && holds === "True");
}

export function isJobFinished(job: Job): boolean {
  return finishedConditionOf(job) !== undefined;
}
