import type { Job } from "@coxswain/apimachinery/schema/kinds/batch/v1";
import type { Container, Pod, PodTemplateSpec } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { toIndex } from "./completion-indexes.ts";
import { trackingName } from "./tracking-finalizer.ts";

/** What a Job's Pods are made of, and how they are told apart. Source: pkg/controller/job/indexed_job_utils.go */
const indexAnnotation = "batch.kubernetes.io/job-completion-index";
const indexVariable = "JOB_COMPLETION_INDEX";

export function isIndexed({ spec }: Job): boolean {
  return spec.completionMode === "Indexed";
}

/** Which part of an indexed Job's work the Pod does; undefined when it does not say so. */
export function completionIndexOf({ metadata }: Pod): number | undefined {
  const text = metadata.annotations?.[indexAnnotation];
  return text === undefined ? undefined : toIndex(text);
}

/** Counts for the Job: of an indexed one only a Pod whose index is one of the Job's. */
export function hasValidIndex(job: Job, pod: Pod): boolean {
  if (!isIndexed(job)) return true;
  const index = completionIndexOf(pod);
  return index !== undefined && index < (job.spec.completions ?? 0);
}

export interface PodRecipe {
  readonly template: PodTemplateSpec;
  /** The start of the Pod's name, where it is not the Job's name and a dash. */
  readonly generateName?: string;
}

/**
 * How to make a Job's Pods.
 * @returns asked for each Pod with its completion index, undefined for a Job without
 */
export function podRecipes(job: Job, tracked: boolean): (index: number | undefined) => PodRecipe {
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

/** The index reaches the program by way of the annotation; a variable of the user's under that name stays. */
function withIndexVariable(container: Container): Container {
  const env = container.env ?? [];
  if (env.some(({ name }) => name === indexVariable)) return container;
  const fieldRef = { fieldPath: `metadata.annotations['${indexAnnotation}']` };
  return { ...container, env: [...env, { name: indexVariable, valueFrom: { fieldRef } }] };
}

/** Five characters of a name's 63 are the server's. Source: k8s.io/apiserver pkg/storage/names, MaxGeneratedNameLength */
const longestPrefix = 58;

function indexedPrefix(jobName: string, index: number): string {
  const suffix = `-${index}-`;
  return jobName.slice(0, longestPrefix - suffix.length) + suffix;
}
