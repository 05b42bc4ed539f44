/**
 * Version skew between API servers and kubelets. Pure.
 * Source: kubernetes.io, version skew policy of 1.23
 */

export interface ClusterVersions {
  /** Version by address of each API server; undefined when it does not respond. */
  readonly apiServers: Readonly<Record<string, string | undefined>>;
  /** Version by node. */
  readonly kubelets: Readonly<Record<string, string>>;
}

/** Minor version of `v1.23.4`; undefined for anything else, as of another major version. */
export const minorOf = (version: string): number | undefined => {
  const [, minor] = /^v?1\.(\d+)(?:\.|$)/.exec(version) ?? [];
  return minor === undefined ? undefined : Number(minor);
};

/** Kubelets may be older than an API server by this many minor versions. */
const mostKubeletSkew = 2;

/**
 * Reasons why a machine's control plane must not be changed to this version, a line each with its remedy.
 * @param own the address of the machine's API server, whose version is about to change
 */
export function controlPlaneFaults(target: string, own: string, { apiServers, kubelets }: ClusterVersions): string[] {
  const to = minorOf(target);
  if (to === undefined) return [`${target} is not a version of Kubernetes 1`];
  const from = minorOf(apiServers[own] ?? target);
  const faults: string[] = [];
  if (from !== undefined && Math.abs(to - from) > 1)
    faults.push(`${target} is not next to ${apiServers[own]}: go by way of 1.${from + Math.sign(to - from)}`);
  for (const [address, version] of Object.entries(apiServers)) {
    if (address === own) continue;
    if (version === undefined)
      faults.push(`the API server ${address} does not answer: mend it first, or take its machine out of the cluster`);
    else if (Math.abs(to - (minorOf(version) ?? Number.NaN)) > 1)
      faults.push(`the API server ${address} is ${version}, which is not next to ${target}: upgrade its machine first`);
  }
  for (const [node, version] of Object.entries(kubelets)) {
    const kubelet = minorOf(version) ?? Number.NaN;
    if (kubelet > to) faults.push(`the kubelet of ${node} is ${version}, newer than ${target}: downgrade that node first`);
    else if (!(to - kubelet <= mostKubeletSkew))
      faults.push(
        `the kubelet of ${node} is ${version}, more than ${mostKubeletSkew} versions older than ${target}: upgrade that node first`,
      );
  }
  return faults;
}

/** The machine that is about to change. */
interface ChangedMachine {
  /** The address of its API server; undefined: it is a node. */
  readonly own: string | undefined;
  /** True when its kubelet uses only that API server, and not a load balancer. */
  readonly usesOwn: boolean;
}

/** As `controlPlaneFaults`, for a whole machine, whose API server changes before its kubelet. */
export function machineFaults(target: string, { own, usesOwn }: ChangedMachine, versions: ClusterVersions): string[] {
  if (own === undefined) return kubeletFaults(target, versions);
  const others = usesOwn ? {} : Object.fromEntries(Object.entries(versions.apiServers).filter(([server]) => server !== own));
  return [...controlPlaneFaults(target, own, versions), ...kubeletFaults(target, { ...versions, apiServers: others })];
}

/** As `controlPlaneFaults`, for a kubelet. */
export function kubeletFaults(target: string, { apiServers }: ClusterVersions): string[] {
  const to = minorOf(target) ?? Number.NaN;
  return Object.entries(apiServers).flatMap(([address, version]) => {
    if (version === undefined) return [];
    const server = minorOf(version) ?? Number.NaN;
    if (to > server) return [`the API server ${address} is ${version}, older than ${target}: upgrade the control plane first`];
    if (server - to <= mostKubeletSkew) return [];
    return [
      `the API server ${address} is ${version}, more than ${mostKubeletSkew} versions newer than ${target}: downgrade the control plane first`,
    ];
  });
}
