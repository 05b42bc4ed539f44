/** The kubelets' configuration, common to all machines; settings that differ are flags. Pure. */

import { join } from "node:path";
import { toYaml } from "@coxswain/apimachinery/objects/codec/yaml";
import { type ClusterSettings, clusterDns, type FlagMap, folder, type NodeSettings } from "../config/settings.ts";
import type { WantedFile } from "../host/files.ts";
import { flagWords } from "../host/units.ts";

export const kubeletFolder = "/var/lib/kubelet";

/** @param requested the user's KubeletConfiguration, whose fields take precedence */
export function kubeletConfiguration(
  cluster: ClusterSettings,
  requested: Readonly<Record<string, unknown>> = {},
): Record<string, unknown> {
  return {
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true },
      x509: { clientCAFile: join(folder, "pki", "ca.crt") },
    },
    authorization: { mode: "Webhook" },
    clusterDNS: [clusterDns(cluster)],
    clusterDomain: cluster.dnsDomain,
    rotateCertificates: true,
    staticPodPath: join(folder, "manifests"),
    ...requested,
  };
}

interface KubeletFlagOptions {
  /** Cgroup driver of the runtime; undefined: unknown, the configuration decides. */
  readonly cgroupDriver: "systemd" | "cgroupfs" | undefined;
  /** True when the machine has a serving certificate signed by the cluster's authority. */
  readonly hasServingCertificate: boolean;
  readonly hostName: string;
}

export function kubeletFlags(node: NodeSettings, { cgroupDriver, hasServingCertificate, hostName }: KubeletFlagOptions): FlagMap {
  return {
    "container-runtime": "remote",
    "container-runtime-endpoint": node.criSocket,
    "node-ip": node.advertiseAddress,
    ...(hostName.toLowerCase() !== node.name && { "hostname-override": node.name }),
    ...(cgroupDriver !== undefined && { "cgroup-driver": cgroupDriver }),
    ...(hasServingCertificate && {
      "tls-cert-file": join(folder, "pki", "kubelet.crt"),
      "tls-private-key-file": join(folder, "pki", "kubelet.key"),
    }),
    ...(node.taints.length > 0 && { "register-with-taints": node.taints.map(taintText).join(",") }),
    ...node.kubeletFlags,
  };
}

const taintText = ({ key, value = "", effect }: { key: string; value?: string; effect: string }): string =>
  `${key}=${value}:${effect}`;

export const kubeletFiles = (configuration: Readonly<Record<string, unknown>>, flags: FlagMap): WantedFile[] => [
  { path: join(kubeletFolder, "config.yaml"), content: toYaml(configuration) },
  {
    path: join(kubeletFolder, "kubeadm-flags.env"),
    content: `KUBELET_KUBEADM_ARGS="${flagWords(flags)
      .map((word) => word.replaceAll(/[\\"$`]/g, "\\$&"))
      .join(" ")}"\n`,
  },
];
