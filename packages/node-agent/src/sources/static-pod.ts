import { createHash } from "node:crypto";
import { decodePod } from "@coxswain/apimachinery/objects/codec/decode-pod";
import { parseYamlAside } from "@coxswain/apimachinery/objects/codec/yaml-aside";
import { formatFieldErrors } from "@coxswain/apimachinery/objects/errors/field-error";
import { hasManyValues, isContainer } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { isJsonObject } from "@coxswain/apimachinery/objects/meta/json-value";
import { formatTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Container, Pod, Probe } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { configHashAnnotation, configSeenAnnotation, configSourceAnnotation, type NodePod } from "../pod/pod.ts";
import { staticPodProblems } from "./static-pod-validation.ts";

/** Where manifests come from. */
interface ManifestOrigin {
  source: "file" | "http";
  /** Path of the file, or the URL. */
  from: string;
  nodeName: string;
  /** ms since the epoch. */
  now: number;
  /** Large manifests are parsed and hashed in. */
  turns: Turns;
}

/** A manifest of this many bytes, or more, is not read. */
export const maxManifestBytes = 10 * 1024 * 1024;
/** Upstream's error for a longer one. */
export const manifestTooLong = "the read limit is reached";

/**
 * Parses a manifest and sets UID, name, namespace, node and defaults.
 * @throws Error when the text is not a valid Pod
 * Source: pkg/kubelet/config/common.go
 */
export async function staticPod(text: string, origin: ManifestOrigin): Promise<NodePod> {
  return origin.turns.run(podOf(await parseYamlAside(text, undefined, origin.turns), origin));
}

/** Parses YAML documents that contain Pods or PodLists. @throws Error when one of them is invalid */
export async function staticPods(text: string, origin: ManifestOrigin): Promise<NodePod[]> {
  const pods: NodePod[] = [];
  for (const part of text.split(betweenDocuments)) {
    const document = await parseYamlAside(part, undefined, origin.turns);
    if (typeof document !== "object" || document === null) continue;
    const { kind, items }: { kind?: unknown; items?: unknown } = document;
    for (const item of kind === "PodList" ? itemsOf(items) : [document]) {
      const withKind = { apiVersion: "v1", kind: "Pod", ...(isJsonObject(item) && item) };
      pods.push(await origin.turns.run(podOf(withKind, origin)));
    }
  }
  return pods;
}

/** Before a line `---`, which no scalar contains, unless it ends the directives of its own document. */
const betweenDocuments = /(?<!^%.*)\r?\n(?=---(?:\s|$))/m;

function itemsOf(list: unknown): readonly unknown[] {
  if (list === undefined || list === null) return [];
  if (Array.isArray(list)) return list;
  throw new Error("invalid pod list: items is not a list");
}

function* podOf(manifest: unknown, origin: ManifestOrigin): Steps<NodePod> {
  const { apiVersion, kind }: { apiVersion?: string; kind?: string } = manifest ?? {};
  if (apiVersion !== "v1" || kind !== "Pod") throw new Error(`invalid pod: ${apiVersion ?? ""} ${kind ?? ""} is not a v1 Pod`);
  const pod = decodePod(manifest);
  yield;
  const problems = staticPodProblems({ ...pod, metadata: pod.metadata ?? {} });
  if (problems.length > 0) throw new Error(`invalid pod: ${formatFieldErrors(problems)}`);
  yield;
  const uid = pod.metadata?.uid || (yield* generatedUid(pod, origin));
  yield;
  return withStaticDefaults(pod, uid, origin);
}

function* generatedUid(pod: Pod, { source, from, nodeName }: ManifestOrigin): Steps<string> {
  const hash = createHash("md5").update(`host:${nodeName}`).update(`${source}:${from}`);
  let text = "";
  for (const piece of jsonPieces(pod)) {
    text += piece;
    if (piece !== "" && text.length < hashedAtOnce) continue;
    hash.update(text);
    text = "";
    yield;
  }
  return hash.update(text).digest("hex");
}

/** Characters that are hashed in one step. */
const hashedAtOnce = 64 * 1024;
/** Values with more members than this are not written in one piece. */
const mostInPiece = 256;

/** The text of `JSON.stringify` of a parsed manifest. An empty piece comes before work of some milliseconds. */
function* jsonPieces(value: unknown): Generator<string> {
  if (!isContainer(value) || !hasManyValues(value, mostInPiece)) {
    yield JSON.stringify(value);
    return;
  }
  yield "";
  const isList = Array.isArray(value);
  let before = isList ? "[" : "{";
  for (const key of isList ? value.keys() : Object.keys(value)) {
    yield isList ? before : `${before}${JSON.stringify(key)}:`;
    yield* jsonPieces(value[key]);
    before = ",";
  }
  yield isList ? "]" : "}";
}

/** Takes ownership of the Pod. */
function withStaticDefaults(pod: Pod, uid: string, { source, nodeName, now }: ManifestOrigin): NodePod {
  const metadata = { ...pod.metadata };
  const named = metadata.name!;
  const node = nodeName.toLowerCase();
  // In place: to copy 160,000 takes 100 ms.
  const annotations = metadata.annotations ?? {};
  annotations[configHashAnnotation] = uid;
  annotations[configSeenAnnotation] = formatTime(now);
  annotations[configSourceAnnotation] = source;
  const tolerations = [...(pod.spec?.tolerations ?? []), { operator: "Exists", effect: "NoExecute" }];
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      ...metadata,
      uid,
      name: named.endsWith(`-${node}`) ? named : `${named}-${node}`,
      namespace: metadata.namespace || "default",
      annotations,
    },
    spec: withDefaults({ ...pod.spec, nodeName, tolerations }),
    status: { phase: "Pending" },
  };
}

/** The API server's defaults, as far as the agent depends on them. Source: pkg/apis/core/v1/defaults.go */
function withDefaults(spec: NodePod["spec"]): NodePod["spec"] {
  return {
    dnsPolicy: "ClusterFirst",
    restartPolicy: "Always",
    terminationGracePeriodSeconds: 30,
    enableServiceLinks: true,
    schedulerName: "default-scheduler",
    ...spec,
    securityContext: spec.securityContext ?? {},
    containers: spec.containers.map((container) => containerDefaults(container, spec.hostNetwork === true)),
    ...(spec.initContainers === undefined
      ? {}
      : { initContainers: spec.initContainers.map((container) => containerDefaults(container, spec.hostNetwork === true)) }),
  };
}

function containerDefaults(container: Container, hostNetwork: boolean): Container {
  const image = container.image ?? "";
  const latest = image.endsWith(":latest") || image.lastIndexOf(":") <= image.lastIndexOf("/");
  const { limits, requests } = container.resources ?? {};
  const made: Container = {
    terminationMessagePath: "/dev/termination-log",
    terminationMessagePolicy: "File",
    imagePullPolicy: latest ? "Always" : "IfNotPresent",
    ...container,
    resources:
      limits === undefined ? (container.resources ?? {}) : { ...container.resources, requests: { ...limits, ...requests } },
  };
  if (container.ports !== undefined) {
    made.ports = container.ports.map((port) => ({
      protocol: "TCP",
      ...port,
      ...(hostNetwork && !port.hostPort && { hostPort: port.containerPort }),
    }));
  }
  for (const kind of ["livenessProbe", "readinessProbe", "startupProbe"] as const) {
    const probe = container[kind];
    if (probe !== undefined) made[kind] = probeDefaults(probe);
  }
  return made;
}

function probeDefaults(probe: Probe): Probe {
  const made = { timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3, ...probe };
  if (probe.httpGet !== undefined) made.httpGet = { path: "/", scheme: "HTTP", ...probe.httpGet };
  return made;
}
