import { createHash } from "node:crypto";
import { decodePod } from "@coxswain/apimachinery/objects/codec/decode-pod";
import { parseYaml, yamlDocuments } from "@coxswain/apimachinery/objects/codec/yaml";
import { formatFieldErrors } from "@coxswain/apimachinery/objects/errors/field-error";
import { isJsonObject } from "@coxswain/apimachinery/objects/meta/json-value";
import { formatTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Container, Pod, Probe } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { configHashAnnotation, configSeenAnnotation, configSourceAnnotation, type NodePod } from "../pod/pod.ts";
import { staticPodProblems } from "./static-pod-validation.ts";

/**
 * Parses a manifest and sets UID, name, namespace, node and defaults.
 * @param origin path of the file, or the URL
 * @throws Error when the text is not a valid Pod
 * Source: pkg/kubelet/config/common.go
 */
export function staticPod(text: string, source: "file" | "http", origin: string, nodeName: string, now: number): NodePod {
  return applyStaticDefaults(decodeManifest(parseYaml(text)), source, origin, nodeName, now);
}

/** Parses YAML documents that contain Pods or PodLists. @throws Error when one of them is invalid */
export function staticPods(text: string, source: "file" | "http", origin: string, nodeName: string, now: number): NodePod[] {
  const pods: NodePod[] = [];
  for (const document of yamlDocuments(text)) {
    if (typeof document !== "object" || document === null) continue;
    const { kind, items }: { kind?: unknown; items?: unknown } = document;
    for (const item of kind === "PodList" ? itemsOf(items) : [document]) {
      const withKind = { apiVersion: "v1", kind: "Pod", ...(isJsonObject(item) && item) };
      pods.push(applyStaticDefaults(decodeManifest(withKind), source, origin, nodeName, now));
    }
  }
  return pods;
}

function itemsOf(list: unknown): readonly unknown[] {
  if (list === undefined || list === null) return [];
  if (Array.isArray(list)) return list;
  throw new Error("invalid pod list: items is not a list");
}

function decodeManifest(value: unknown): Pod {
  const { apiVersion, kind }: { apiVersion?: string; kind?: string } = value ?? {};
  if (apiVersion !== "v1" || kind !== "Pod") throw new Error(`invalid pod: ${apiVersion ?? ""} ${kind ?? ""} is not a v1 Pod`);
  const pod = decodePod(value);
  const problems = staticPodProblems({ ...pod, metadata: pod.metadata ?? {} });
  if (problems.length > 0) throw new Error(`invalid pod: ${formatFieldErrors(problems)}`);
  return pod;
}

function applyStaticDefaults(pod: Pod, source: "file" | "http", origin: string, nodeName: string, now: number): NodePod {
  const metadata = { ...pod.metadata };
  const generated = createHash("md5")
    .update(`host:${nodeName}`)
    .update(`${source}:${origin}`)
    .update(JSON.stringify(pod))
    .digest("hex");
  const uid = metadata.uid || generated;
  const named = metadata.name!;
  const node = nodeName.toLowerCase();
  const annotations = {
    ...metadata.annotations,
    [configHashAnnotation]: uid,
    [configSeenAnnotation]: formatTime(now),
    [configSourceAnnotation]: source,
  };
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
