/** Reads a kubelet's `/metrics/resource`. Source: pkg/kubelet/metrics/collectors/resource_metrics.go */

/** Resource usage of a container or node at one moment. */
export interface Sample {
  /** When it was measured, in ms since the epoch. */
  readonly at: number;
  /** Since the start, in seconds of one core. */
  readonly cpuSeconds: number;
  readonly memoryBytes: number;
  /** When the container started, in ms since the epoch, if the kubelet says so. */
  readonly startedAt?: number | undefined;
}

export interface NodeSamples {
  readonly node: Sample | undefined;
  /** By `namespace/name` of the pod, then by container. */
  readonly pods: ReadonlyMap<string, ReadonlyMap<string, Sample>>;
}

interface Draft {
  at?: number;
  cpuSeconds?: number;
  memoryBytes?: number;
  startedAt?: number;
}

const line = /^([a-z_]+)(?:\{(.*)\})? (\S+)(?: (\d+))?$/;
const label = /([a-z_]+)="((?:[^"\\]|\\.)*)"/g;

/**
 * @param now the time of samples without one
 * @returns only what has both CPU and memory: a part that is missing is not zero. Lines that are not understood are left out
 */
export function parseSamples(text: string, now: number): NodeSamples {
  const node: Draft = {};
  const pods = new Map<string, Map<string, Draft>>();
  for (const one of text.split("\n")) {
    const match = line.exec(one);
    if (match === null) continue;
    const [, name = "", labels = "", number = "", time] = match;
    const value = Number(number);
    if (!Number.isFinite(value) || value < 0) continue;
    const at = time === undefined ? now : Number(time);
    if (name.startsWith("node_")) take(node, name.slice("node_".length), value, at);
    else if (name.startsWith("container_")) {
      const of = labelsOf(labels);
      if (!of["namespace"] || !of["pod"] || !of["container"]) continue;
      const containers = pods.getOrInsertComputed(`${of["namespace"]}/${of["pod"]}`, () => new Map());
      take(
        containers.getOrInsertComputed(of["container"], () => ({})),
        name.slice("container_".length),
        value,
        at,
      );
    }
  }
  const complete = new Map<string, Map<string, Sample>>();
  for (const [pod, containers] of pods) {
    const samples = new Map<string, Sample>();
    for (const [name, draft] of containers) {
      const sample = sampleOf(draft);
      if (sample !== undefined) samples.set(name, sample);
    }
    // A pod without one of its containers would seem to use less than it does.
    if (samples.size === containers.size) complete.set(pod, samples);
  }
  return { node: sampleOf(node), pods: complete };
}

function take(draft: Draft, what: string, value: number, at: number): void {
  if (what === "cpu_usage_seconds_total") {
    draft.cpuSeconds = value;
    draft.at = at;
  } else if (what === "memory_working_set_bytes") draft.memoryBytes = value;
  else if (what === "start_time_seconds") draft.startedAt = value * 1000;
}

function sampleOf({ at, cpuSeconds, memoryBytes, startedAt }: Draft): Sample | undefined {
  // A kubelet that cannot measure reports zero.
  if (at === undefined || cpuSeconds === undefined || !memoryBytes) return undefined;
  return { at, cpuSeconds, memoryBytes, startedAt };
}

function labelsOf(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const [, name = "", value = ""] of text.matchAll(label)) labels[name] = value.replaceAll(/\\(.)/g, "$1");
  return labels;
}
