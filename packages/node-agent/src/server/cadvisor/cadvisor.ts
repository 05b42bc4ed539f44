import { dirname, join } from "node:path";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { runSteps, type Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { findContainer, type NodePod } from "../../pod/pod.ts";
import type { Cri } from "../../runtime/cri-schema.ts";
import { labelNames } from "../../runtime/labels.ts";
import { type ContainerRuntime, containerState, sandboxState } from "../../runtime/runtime.ts";
import { labelText, MetricText } from "../metric-text.ts";
import {
  type CgroupReader,
  type CgroupUsage,
  interfacesOf,
  newCgroupReader,
  openFilesLimitOf,
  openFilesOf,
} from "./cgroup-usage.ts";
import { type CadvisorSubject, families } from "./families.ts";

interface CadvisorContext {
  runtime: ContainerRuntime;
  pods: () => readonly NodePod[];
  /** `""` when the runtime decides. */
  cgroupParentOf: (pod: NodePod) => string;
  /** Image of sandboxes. */
  sandboxImage: string;
  machine: { cpuCount: number; memoryBytes: number };
  now: () => number;
  /** The page of hundreds of containers is written in; absent: at once. */
  turns?: Turns | undefined;
  /** Overridden in tests. */
  mountPoint?: string;
}

/** Cgroup of a container whose parent the runtime chooses. */
const runtimeParent = "/k8s.io";

/**
 * Renders `/metrics/cadvisor`: usage by the machine, the cgroups of Pods and QoS classes, containers and sandboxes, with cadvisor's
 * names and labels. Network interfaces are those of sandboxes and of the machine.
 */
export function newCadvisor(context: CadvisorContext): () => Promise<string> {
  let opening: Promise<CgroupReader> | undefined;
  return async () => {
    opening ??= newCgroupReader(context.mountPoint);
    return runSteps(context.turns, textOf(await subjects(context, await opening), context));
  };
}

interface Labels extends Record<string, string> {
  container: string;
  id: string;
  image: string;
  name: string;
  namespace: string;
  pod: string;
}

const labelsOf = (id: string, more: Partial<Labels> = {}): Labels => ({
  container: "",
  id,
  image: "",
  name: "",
  namespace: "",
  pod: "",
  ...more,
});

async function subjects(context: CadvisorContext, reader: CgroupReader): Promise<CadvisorSubject[]> {
  const { runtime } = context;
  const [sandboxes, containers, layers] = await Promise.all([
    runtime.listPodSandboxes(),
    runtime.listContainers(),
    runtime.listContainerStats().catch(() => []),
  ]);
  const used = new Map(layers.map((stats) => [stats.attributes?.id ?? "", stats.writableLayer]));
  const parents = new Map(context.pods().map((pod) => [pod.metadata.uid, { pod, path: context.cgroupParentOf(pod) }]));
  const found: Promise<CadvisorSubject>[] = [machine(reader)];
  for (const path of classesOf([...parents.values()].map((parent) => parent.path)))
    found.push(reader.usage(path).then((usage) => ({ labels: labelsOf(path), usage })));
  for (const { pod, path } of parents.values()) {
    const { name, namespace } = pod.metadata;
    if (path !== "")
      found.push(reader.usage(path).then((usage) => ({ labels: labelsOf(path, { namespace, pod: name }), usage })));
  }
  for (const sandbox of sandboxes.filter(({ state }) => state === sandboxState.ready))
    found.push(contained(reader, parents.get(sandbox.metadata?.uid ?? "")?.path, sandbox, context.sandboxImage, true));
  for (const container of containers.filter(({ state }) => state === containerState.running)) {
    const { pod, path } = parents.get(container.labels[labelNames.podUid] ?? "") ?? {};
    const image = imageOf(pod, container);
    const layer = used.get(container.id);
    const rootfs =
      layer == null ? undefined : { usedBytes: layer.usedBytes?.value ?? 0, inodesUsed: layer.inodesUsed?.value ?? 0 };
    found.push(contained(reader, path, container, image, false).then((subject) => ({ ...subject, rootfs })));
  }
  return (await Promise.all(found)).filter(({ usage }) => usage.cpu !== undefined || usage.memory !== undefined);
}

async function machine(reader: CgroupReader): Promise<CadvisorSubject> {
  return { labels: labelsOf("/"), usage: await reader.usage("/"), interfaces: await interfacesOf(1) };
}

/** The cgroups between the root and the Pods: `/kubepods`, `/kubepods/burstable`. */
function classesOf(paths: readonly string[]): string[] {
  const all = new Set<string>();
  for (const path of paths) for (let at = dirname(path); path !== "" && at !== "/" && at !== "."; at = dirname(at)) all.add(at);
  return [...all].sort();
}

/** The image's name as the Pod writes it: the runtime often knows its digest only. */
function imageOf(pod: NodePod | undefined, { labels, image }: Cri<"Container">): string {
  const written = pod === undefined ? undefined : findContainer(pod, labels[labelNames.containerName] ?? "")?.container.image;
  return written || image?.image || "";
}

type Contained = Cri<"Container"> | Cri<"PodSandbox">;

async function contained(
  reader: CgroupReader,
  parent: string | undefined,
  one: Contained,
  image: string,
  isSandbox: boolean,
): Promise<CadvisorSubject> {
  const { path, usage, pids } = await cgroupOf(reader, parent, one.id);
  const { files, sockets } = await openFilesOf(pids);
  const first = pids[0];
  return {
    labels: labelsOf(path, {
      container: one.labels[labelNames.containerName] ?? "",
      image,
      name: one.id,
      namespace: one.labels[labelNames.podNamespace] ?? "",
      pod: one.labels[labelNames.podName] ?? "",
    }),
    usage,
    startedMs: one.createdAt / 1e6,
    processes: { count: pids.length, files, sockets, maxFiles: first === undefined ? undefined : await openFilesLimitOf(first) },
    ...(isSandbox && first !== undefined && { interfaces: await interfacesOf(first) }),
  };
}

/**
 * The runtime names a container's cgroup by its id, or a scope with a special prefix under systemd.
 * @param parent empty when the runtime chooses it
 */
export async function cgroupOf(
  reader: CgroupReader,
  parent: string | undefined,
  id: string,
): Promise<{ path: string; usage: CgroupUsage; pids: number[] }> {
  const below = parent || runtimeParent;
  const names = below.endsWith(".slice") ? [`cri-containerd-${id}.scope`, `crio-${id}.scope`, id] : [id, `crio-${id}`];
  for (const name of names) {
    const path = join(below, name);
    const usage = await reader.usage(path);
    if (usage.cpu !== undefined || usage.memory !== undefined) return { path, usage, pids: await reader.processes(path) };
  }
  return { path: join(below, id), usage: { disks: new Map() }, pids: [] };
}

function* textOf(all: readonly CadvisorSubject[], { machine: { cpuCount, memoryBytes }, now }: CadvisorContext): Steps<string> {
  const text = new MetricText();
  const nowSeconds = now() / 1000;
  const named = all.map((subject) => ({ subject, names: labelText(subject.labels) }));
  yield;
  for (const { name, type, help, samples } of families) {
    text.family(name, type, help);
    for (const { subject, names } of named) {
      for (const { labels, value } of samples(subject, nowSeconds))
        text.sample(name, labels === undefined ? names : `${names},${labelText(labels)}`, value);
    }
    yield;
  }
  text.family("container_scrape_error", "gauge", "1 if there was an error while getting container metrics, 0 otherwise");
  text.sample("container_scrape_error", {}, 0);
  text.family("machine_cpu_cores", "gauge", "Number of logical CPU cores.");
  text.sample("machine_cpu_cores", {}, cpuCount);
  text.family("machine_memory_bytes", "gauge", "Amount of memory installed on the machine.");
  text.sample("machine_memory_bytes", {}, memoryBytes);
  return text.toString();
}
