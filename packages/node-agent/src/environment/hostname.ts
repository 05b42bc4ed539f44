import { readFile, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { makeFolder } from "@coxswain/apimachinery/process/files/make-folder";
import type { NodePod } from "../pod/pod.ts";

const maxHostnameLength = 63;

/** Pure: the host name of a Pod, and its domain if it has a subdomain. Source: kubelet_pods.go GeneratePodHostNameAndDomain */
export function hostnameAndDomain(pod: NodePod, clusterDomain: string): { hostname: string; domain: string } {
  let hostname = pod.spec.hostname || pod.metadata.name;
  if (hostname.length > maxHostnameLength) hostname = hostname.slice(0, maxHostnameLength).replace(/[-.]+$/, "");
  const domain = pod.spec.subdomain ? `${pod.spec.subdomain}.${pod.metadata.namespace}.svc.${clusterDomain}` : "";
  return { hostname, domain };
}

/** Pure: the kernel host name of a Pod, depending on setHostnameAsFQDN. @throws Error when it exceeds the kernel's limit */
export function nodenameOf(pod: NodePod, hostname: string, domain: string): string {
  if (pod.spec.setHostnameAsFQDN !== true || domain === "") return hostname;
  const fqdn = `${hostname}.${domain}`;
  if (fqdn.length > 64) {
    throw new Error(
      `failed to construct FQDN from pod hostname and cluster domain, FQDN ${fqdn} is too long (64 characters is the max, ${fqdn.length} characters requested)`,
    );
  }
  return fqdn;
}

const header = "# Kubernetes-managed hosts file.\n";
const headerWithNode = "# Kubernetes-managed hosts file (host network).\n";

/** Pure: the contents of a Pod's /etc/hosts. Source: kubelet_pods.go managedHostsFileContent */
export function hostsFile(pod: NodePod, ips: readonly string[], hostname: string, domain: string): string {
  let text = `${header}127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\nfe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n`;
  for (const ip of ips) text += domain === "" ? `${ip}\t${hostname}\n` : `${ip}\t${hostname}.${domain}\t${hostname}\n`;
  return text + aliases(pod);
}

function aliases(pod: NodePod): string {
  const entries = pod.spec.hostAliases ?? [];
  if (entries.length === 0) return "";
  return `\n# Entries added by HostAliases.\n${entries.map((alias) => `${alias.ip ?? ""}\t${(alias.hostnames ?? []).join("\t")}\n`).join("")}`;
}

/** Writes the file that is mounted as /etc/hosts; Pods in the host network get a copy of the host's file. */
export async function writeHostsFile(path: string, pod: NodePod, ips: readonly string[], clusterDomain: string): Promise<void> {
  await makeFolder(dirname(path));
  const { hostname, domain } = hostnameAndDomain(pod, clusterDomain);
  const text = pod.spec.hostNetwork
    ? headerWithNode + (await readFile("/etc/hosts", "utf8").catch(() => "")) + aliases(pod)
    : hostsFile(pod, ips, hostname, domain);
  await writeFile(path, text, { mode: 0o644 });
}
