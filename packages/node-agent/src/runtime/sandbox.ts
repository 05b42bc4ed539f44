import type { NodePod } from "../pod/pod.ts";
import type { CriInput } from "./cri-schema.ts";
import { sandboxAnnotations, sandboxLabels } from "./labels.ts";
import { namespaceOptions, runtimeDefault } from "./security-context.ts";

/** Sandbox settings that are not in the Pod's spec. */
interface SandboxSettings {
  attempt: number;
  hostname: string;
  dns: { servers: readonly string[]; searches: readonly string[]; options: readonly string[] };
  /** Path below the root of the cgroup hierarchy: `/kubepods/burstable/pod<uid>`; `""` leaves it to the runtime. */
  cgroupParent: string;
  logDirectory: string;
  /** Groups of the Pod's volumes. */
  volumeGroups: readonly number[];
}

/** Pure: the CRI sandbox configuration of a Pod. Source: pkg/kubelet/kuberuntime/kuberuntime_sandbox.go */
export function sandboxConfig(pod: NodePod, settings: SandboxSettings): CriInput<"PodSandboxConfig"> {
  const security = pod.spec.securityContext;
  const sysctls = Object.fromEntries((security?.sysctls ?? []).map((sysctl) => [sysctl.name, sysctl.value]));
  return {
    metadata: { name: pod.metadata.name, namespace: pod.metadata.namespace, uid: pod.metadata.uid, attempt: settings.attempt },
    labels: sandboxLabels(pod),
    annotations: sandboxAnnotations(pod),
    logDirectory: settings.logDirectory,
    dnsConfig: settings.dns,
    hostname: pod.spec.hostNetwork ? "" : settings.hostname,
    portMappings: portMappings(pod),
    linux: {
      cgroupParent: settings.cgroupParent,
      sysctls,
      securityContext: {
        privileged: hasPrivilegedContainer(pod),
        seccomp: { profileType: runtimeDefault },
        namespaceOptions: namespaceOptions(pod),
        selinuxOptions: security?.seLinuxOptions,
        runAsUser: security?.runAsUser === undefined ? undefined : { value: security.runAsUser },
        runAsGroup: security?.runAsGroup === undefined ? undefined : { value: security.runAsGroup },
        supplementalGroups: [
          ...(security?.fsGroup === undefined ? [] : [security.fsGroup]),
          ...settings.volumeGroups,
          ...(security?.supplementalGroups ?? []),
        ],
      },
    },
  };
}

const protocols: Readonly<Record<string, number>> = { TCP: 0, UDP: 1, SCTP: 2 };

/** Host ports of a Pod with its own network namespace; Pods in the host network need no mapping. */
function portMappings(pod: NodePod): CriInput<"PortMapping">[] {
  if (pod.spec.hostNetwork) return [];
  const mappings: CriInput<"PortMapping">[] = [];
  const seen = new Set<string>();
  for (const container of pod.spec.containers) {
    for (const port of container.ports ?? []) {
      const protocol = port.protocol || "TCP";
      const key = `${port.hostIP ?? ""}:${port.hostPort ?? 0}:${port.containerPort}:${protocol}`;
      if (seen.has(key)) continue;
      seen.add(key);
      mappings.push({
        protocol: protocols[protocol] ?? 0,
        containerPort: port.containerPort,
        hostPort: port.hostPort ?? 0,
        hostIp: port.hostIP ?? "",
      });
    }
  }
  return mappings;
}

function hasPrivilegedContainer(pod: NodePod): boolean {
  const containers = [...(pod.spec.initContainers ?? []), ...pod.spec.containers];
  return containers.some((container) => container.securityContext?.privileged === true);
}
