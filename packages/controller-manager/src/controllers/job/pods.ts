import type { Job } from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";
import type { Container, Pod, PodTemplateSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { toIndex } from "./completion-indexes.ts";
import { trackingName } from "./tracking-finalizer.ts";

/** Construction and indexes of Job Pods. Source: pkg/controller/job/indexed_job_utils.go */
const indexAnnotation = "batch.kubernetes.io/job-completion-index";
const indexVariable = "JOB_COMPLETION_INDEX";

export function isIndexed({ spec }: Job): boolean {
  return spec.completionMode === "Indexed";
}

/** Completion index from the Pod's annotation; undefined when absent or malformed. */
export function completionIndexOf({ metadata }: Pod): number | undefined {
  const text = metadata.annotations?.[indexAnnotation];
  return text === undefined ? undefined : toIndex(text);
}

/** Whether the Pod counts for the Job. Pods of an indexed Job need an index below `spec.completions`. */
export function hasValidIndex(job: Job, pod: Pod): boolean {
  if (!isIndexed(job)) return true;
  const index = completionIndexOf(pod);
  return index !== undefined && index < (job.spec.completions ?? 0);
}

/** Input for the creation of one Pod. */
interface PodToCreate {
  readonly template: PodTemplateSpec;
  /** `metadata.generateName` of the Pod; defaults to the Job's name and a dash. */
  readonly generateName?: string;
}

/**
 * Prepares the Pod template of a Job.
 * @returns function from a completion index (undefined for a Job that is not indexed) to the template of that Pod
 */
export function podBuilder(job: Job, tracked: boolean): (index: number | undefined) => PodToCreate {
  const { name = "" } = job.metadata;
  const { metadata = {}, spec = { containers: [] } } = job.spec.template;
  const finalizers = metadata.finalizers ?? [];
  const base: PodTemplateSpec = {
    metadata:
      !tracked || finalizers.includes(trackingName) ? metadata : { ...metadata, finalizers: [...finalizers, trackingName] },
    spec,
  };
  if (!isIndexed(job)) return () => ({ template: base });
  const indexedSpec = {
    ...spec,
    ...(spec.initContainers && { initContainers: spec.initContainers.map(withIndexVariable) }),
    containers: spec.containers.map(withIndexVariable),
  };
  return (index = 0) => ({
    template: {
      metadata: { ...base.metadata, annotations: { ...metadata.annotations, [indexAnnotation]: String(index) } },
      spec: { ...indexedSpec, hostname: `${name}-${index}` },
    },
    generateName: indexedPrefix(name, index),
  });
}

/** Adds the variable that exposes the index annotation; a user-defined variable of the same name is kept. */
function withIndexVariable(container: Container): Container {
  const env = container.env ?? [];
  if (env.some(({ name }) => name === indexVariable)) return container;
  const fieldRef = { fieldPath: `metadata.annotations['${indexAnnotation}']` };
  return { ...container, env: [...env, { name: indexVariable, valueFrom: { fieldRef } }] };
}

/**
 * The API server appends a random suffix of five characters to generateName, within a limit of 63.
 * Source: k8s.io/apiserver pkg/storage/names, MaxGeneratedNameLength
 */
const longestPrefix = 58;

function indexedPrefix(jobName: string, index: number): string {
  const suffix = `-${index}-`;
  return jobName.slice(0, longestPrefix - suffix.length) + suffix;
}
