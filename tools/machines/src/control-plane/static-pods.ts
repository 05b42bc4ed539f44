/** The control plane as static pods, as kubeadm 1.23 writes them. Pure. Source: kubeadm's phases control-plane and etcd */

import { join } from "node:path";
import { kubernetesRelease } from "@coxswain/apimachinery/process/release";
import { type ClusterSettings, folder, type NodeSettings } from "../config/settings.ts";
import type { WantedFile } from "../host/files.ts";
import { flagWords } from "../host/units.ts";
import { type ControlPlaneDaemon, etcdFlags, type InitialCluster } from "./flags.ts";

export const manifestFolder = join(folder, "manifests");

/** The image reference that `./cox build --image --name …` gives the archive's image. */
const imageOf = (name: string): string => `k8s.gcr.io/${name}:${kubernetesRelease.gitVersion}`;
const etcdImage = "k8s.gcr.io/etcd:3.5.1-0";

interface Probe {
  readonly host: string;
  readonly port: number;
  readonly path: string;
  readonly scheme: "HTTP" | "HTTPS";
}

interface Pod {
  readonly name: string;
  readonly image: string;
  readonly cpu: string;
  readonly live: Probe;
  readonly ready?: Probe;
  /** hostPath volumes by name: path, equal on node and in the container, and hostPath type. */
  readonly volumes: Readonly<Record<string, readonly [path: string, type: string]>>;
  readonly writable?: readonly string[];
  readonly words: readonly string[];
}

const certificates = {
  "ca-certs": ["/etc/ssl/certs", "DirectoryOrCreate"],
  "k8s-certs": [join(folder, "pki"), "DirectoryOrCreate"],
} as const;

export function etcdPod(cluster: ClusterSettings, node: NodeSettings, initial: InitialCluster): WantedFile {
  return manifest({
    name: "etcd",
    image: etcdImage,
    cpu: "100m",
    live: { host: "127.0.0.1", port: 2381, path: "/health", scheme: "HTTP" },
    volumes: {
      "etcd-certs": [join(folder, "pki", "etcd"), "DirectoryOrCreate"],
      "etcd-data": [cluster.etcdDataDir, "DirectoryOrCreate"],
    },
    writable: ["etcd-data"],
    words: ["etcd", ...flagWords(etcdFlags(cluster, node, initial))],
  });
}

/** @param words the daemon's command line */
export function daemonPod(daemon: ControlPlaneDaemon, words: readonly string[], node: NodeSettings): WantedFile {
  const https = (host: string, port: number, path: string): Probe => ({ host, port, path, scheme: "HTTPS" });
  const kubeconfig = (name: string) => ({ kubeconfig: [join(folder, `${name}.conf`), "FileOrCreate"] as const });
  const own = {
    "kube-apiserver": {
      cpu: "250m",
      live: https(node.advertiseAddress, node.bindPort, "/livez"),
      ready: https(node.advertiseAddress, node.bindPort, "/readyz"),
      volumes: certificates,
    },
    "kube-controller-manager": {
      cpu: "200m",
      live: https("127.0.0.1", 10257, "/healthz"),
      volumes: { ...certificates, ...kubeconfig("controller-manager") },
    },
    "kube-scheduler": { cpu: "100m", live: https("127.0.0.1", 10259, "/healthz"), volumes: kubeconfig("scheduler") },
  }[daemon];
  return manifest({ name: daemon, image: imageOf(daemon), words, ...own });
}

function manifest({ name, image, cpu, live, ready, volumes, writable = [], words }: Pod): WantedFile {
  const slow = { initialDelaySeconds: 10, periodSeconds: 10, timeoutSeconds: 15, httpGet: live };
  const pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { labels: { component: name, tier: "control-plane" }, name, namespace: "kube-system" },
    spec: {
      containers: [
        {
          command: words,
          image,
          imagePullPolicy: "IfNotPresent",
          livenessProbe: { ...slow, failureThreshold: 8 },
          name,
          ...(ready && { readinessProbe: { failureThreshold: 3, periodSeconds: 1, timeoutSeconds: 15, httpGet: ready } }),
          resources: { requests: { cpu } },
          startupProbe: { ...slow, failureThreshold: 24 },
          volumeMounts: Object.entries(volumes).map(([volume, [path]]) => ({
            mountPath: path,
            name: volume,
            ...(!writable.includes(volume) && { readOnly: true }),
          })),
        },
      ],
      hostNetwork: true,
      priorityClassName: "system-node-critical",
      securityContext: { seccompProfile: { type: "RuntimeDefault" } },
      volumes: Object.entries(volumes).map(([volume, [path, type]]) => ({ hostPath: { path, type }, name: volume })),
    },
  };
  // JSON is YAML.
  return { path: join(manifestFolder, `${name}.yaml`), content: `${JSON.stringify(pod, undefined, 2)}\n`, mode: 0o600 };
}
