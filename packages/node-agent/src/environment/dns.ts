import type { NodePod } from "../pod/pod.ts";

/** The name servers, search domains and options of a resolver configuration. */
export interface DnsConfig {
  servers: string[];
  searches: string[];
  options: string[];
}

/** Node settings that the resolver configuration of Pods depends on. */
export interface DnsSettings {
  clusterDns: readonly string[];
  clusterDomain: string;
  /** The node's resolver configuration, from `--resolv-conf`. */
  host: DnsConfig;
  hostIps: readonly string[];
}

/** Reports a problem with the DNS settings as an event of the Pod. */
type DnsProblem = (reason: string, message: string) => void;

const maxServers = 3;
export const maxSearches = 6;
export const maxSearchLength = 256;
const clusterOptions = ["ndots:5"];

/** Pure: the resolver configuration of a Pod from dnsPolicy and dnsConfig. Source: pkg/kubelet/network/dns/dns.go GetPodDNS */
export function podDns(pod: NodePod, settings: DnsSettings, problem: DnsProblem = () => {}): DnsConfig {
  const policy = effectivePolicy(pod, settings, problem);
  let config: DnsConfig;
  if (policy === "None") config = { servers: [], searches: [], options: [] };
  else if (policy === "Cluster") {
    config = { servers: [...settings.clusterDns], searches: clusterSearches(pod, settings), options: [...clusterOptions] };
  } else {
    config = { servers: [...settings.host.servers], searches: [...settings.host.searches], options: [...settings.host.options] };
    // With no name server in the node's file, resolvers use the local host: use the node's IPs.
    if (settings.host.servers.length === 0 && settings.clusterDns.length > 0) {
      config.servers = settings.hostIps.length === 0 ? ["127.0.0.1"] : [...settings.hostIps];
      config.searches = ["."];
    }
  }
  const own = pod.spec.dnsConfig;
  if (own !== undefined) {
    config.servers = unique([...config.servers, ...(own.nameservers ?? [])]);
    config.searches = unique([...config.searches, ...(own.searches ?? [])]);
    config.options = mergeOptions(config.options, own.options ?? []);
  }
  return withinLimits(config, problem);
}

function effectivePolicy(pod: NodePod, settings: DnsSettings, problem: DnsProblem): "None" | "Cluster" | "Host" {
  switch (pod.spec.dnsPolicy ?? "ClusterFirst") {
    case "None":
      return "None";
    case "Default":
      return "Host";
    case "ClusterFirstWithHostNet":
      break;
    default:
      if (pod.spec.hostNetwork) return "Host";
  }
  if (settings.clusterDns.length > 0) return "Cluster";
  const message = `kubelet does not have ClusterDNS IP configured and cannot create Pod using "${pod.spec.dnsPolicy ?? "ClusterFirst"}" policy. Falling back to "Default" policy.`;
  problem("MissingClusterDNS", `pod: "${pod.metadata.name}_${pod.metadata.namespace}(${pod.metadata.uid})". ${message}`);
  return "Host";
}

function clusterSearches(pod: NodePod, settings: DnsSettings): string[] {
  if (settings.clusterDomain === "") return [...settings.host.searches];
  const domain = settings.clusterDomain;
  return unique([`${pod.metadata.namespace}.svc.${domain}`, `svc.${domain}`, domain, ...settings.host.searches]);
}

function withinLimits(config: DnsConfig, problem: DnsProblem): DnsConfig {
  let { servers, searches } = config;
  if (servers.length > maxServers) {
    servers = servers.slice(0, maxServers);
    problem(
      "DNSConfigForming",
      `Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: ${servers.join(" ")}`,
    );
  }
  const wanted = searches;
  if (searches.length > maxSearches) searches = searches.slice(0, maxSearches);
  while (searches.join(" ").length > maxSearchLength) searches = searches.slice(0, -1);
  if (searches.length !== wanted.length) {
    const message = `Search Line limits were exceeded, some search paths have been omitted, the applied search line is: ${searches.join(" ")}`;
    problem("DNSConfigForming", message);
  }
  return { servers, searches, options: config.options };
}

function mergeOptions(present: readonly string[], own: readonly { name?: string; value?: string }[]): string[] {
  const merged = new Map<string, string | undefined>();
  for (const option of present) {
    const colon = option.indexOf(":");
    merged.set(colon < 0 ? option : option.slice(0, colon), colon < 0 ? undefined : option.slice(colon + 1));
  }
  for (const { name = "", value } of own) merged.set(name, value);
  return [...merged].map(([name, value]) => (value === undefined || value === "" ? name : `${name}:${value}`));
}

function unique(list: readonly string[]): string[] {
  return [...new Set(list)];
}

/** Parses the nameserver, search and options lines of a resolv.conf. Source: dns.go parseResolvConf */
export function parseResolvConf(text: string): DnsConfig {
  const config: DnsConfig = { servers: [], searches: [], options: [] };
  for (const raw of text.split("\n")) {
    const line = raw.trim();
    const comment = line.search(/[#;]/);
    const words = (comment < 0 ? line : line.slice(0, comment)).split(/\s+/).filter((word) => word !== "");
    const [keyword, ...values] = words;
    if (keyword === "nameserver" && values[0] !== undefined) config.servers.push(values[0]);
    // A later search line replaces earlier ones.
    if (keyword === "search") config.searches = values.map((value) => (value === "." ? value : value.replace(/\.$/, "")));
    if (keyword === "options")
      config.options = mergeOptions(
        config.options,
        values.map((value) => ({ name: value })),
      );
  }
  return config;
}
