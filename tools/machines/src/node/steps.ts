/** Steps of every machine: programs, kubelet, coxswain-services. */
import { hostname } from "node:os";
import { join } from "node:path";
import { type ClusterSettings, clusterDns, folder } from "../config/settings.ts";
import { linkTarget, missingFiles, type WantedFile, writeFiles, writeLink } from "../host/files.ts";
import { runProgram, tryProgram } from "../host/programs.ts";
import { isActive, isEnabled, startUnits, unitFolder } from "../host/systemd.ts";
import { header, unitWithFlags } from "../host/units.ts";
import { until } from "../host/until.ts";
import { type Machine, pkiFile, shipped } from "../machine.ts";
import type { Step } from "../steps.ts";
import { kubeletFiles, kubeletFlags } from "./kubelet-config.ts";

/** Programs of the archive that get a link in /usr/bin. */
const linkedPrograms = [
  "coxswain",
  "kube-apiserver",
  "kube-controller-manager",
  "kube-scheduler",
  "kubelet",
  "coxswain-services",
  "kubectl-why",
] as const;
export const links = linkedPrograms.map((name) => join("/usr/bin", name));
const linkFor = ({ home }: Machine, path: string): string => join(home, "bin", path.slice("/usr/bin/".length));

const usersPath = "/usr/lib/sysusers.d/coxswain.conf";
const users = ["kube-apiserver", "kube-controller-manager", "kube-scheduler"];

/** Creates the links to the programs, and the daemons' users. */
export const installStep: Step<Machine> = {
  name: "install",
  async missing(machine) {
    const file = { path: usersPath, content: shipped(machine.home, "systemd/coxswain-users.conf") };
    const absent = await Promise.all(
      users.map(async (name) => ((await tryProgram("getent", "passwd", name)) === undefined ? [name] : [])),
    );
    return [
      ...links
        .filter((path) => linkTarget(path) !== linkFor(machine, path))
        .map((path) => `link ${path} to ${linkFor(machine, path)}`),
      ...missingFiles([file]),
      ...absent.flat().map((name) => `create the user ${name}`),
    ];
  },
  async run(machine) {
    for (const path of links) if (linkTarget(path) !== linkFor(machine, path)) writeLink(path, linkFor(machine, path));
    writeFiles([{ path: usersPath, content: shipped(machine.home, "systemd/coxswain-users.conf") }]);
    await runProgram("systemd-sysusers", []);
  },
};

/** One line for each unit that is not running, or not enabled. */
export async function stoppedUnits(units: readonly string[]): Promise<string[]> {
  const states = await Promise.all(units.map(async (unit) => (await isActive(unit)) && (await isEnabled(unit))));
  return units.filter((_, i) => !states[i]).map((unit) => `start ${unit}`);
}

interface KubeletOptions {
  readonly configuration: (machine: Machine) => Readonly<Record<string, unknown>>;
  /** True when the cluster's authority signs the kubelet's serving certificate on this machine. */
  readonly hasServingCertificate: boolean;
}

/** @param options depend on the command: a node gets the configuration from the cluster */
export function kubeletStep({ configuration, hasServingCertificate }: KubeletOptions): Step<Machine> {
  const files = async (machine: Machine): Promise<WantedFile[]> => {
    const flags = kubeletFlags(machine.node, {
      cgroupDriver: await runtimeCgroupDriver(machine.node.criSocket),
      hasServingCertificate,
      hostName: hostname(),
    });
    return [
      { path: join(unitFolder, "kubelet.service"), content: header + shipped(machine.home, "systemd/kubelet.service") },
      {
        path: join(unitFolder, "kubelet.service.d", "10-kubeadm.conf"),
        content: shipped(machine.home, "systemd/kubelet.service.d/10-kubeadm.conf"),
      },
      ...kubeletFiles(configuration(machine), flags),
    ];
  };
  return {
    name: "kubelet-start",
    missing: async (machine) => [...missingFiles(await files(machine)), ...(await stoppedUnits(["kubelet"]))],
    async run(machine) {
      writeFiles(await files(machine));
      await startUnits(["kubelet"]);
      await until(() => answers("http://127.0.0.1:10248/healthz"), {
        timeoutMs: 120_000,
        what: "the kubelet to be healthy",
        remedy: "journalctl --unit kubelet",
      });
    },
  };
}

/** True when the URL responds with 2xx within 5 s. @throws Error without a response */
export const answers = async (url: string): Promise<boolean> => (await fetch(url, { signal: AbortSignal.timeout(5_000) })).ok;

/** Cgroup driver of containerd, which the kubelet must use too; undefined for other runtimes. */
async function runtimeCgroupDriver(criSocket: string): Promise<"systemd" | "cgroupfs" | undefined> {
  if (!criSocket.includes("containerd")) return undefined;
  const setting = /SystemdCgroup = (true|false)/.exec((await tryProgram("containerd", "config", "dump")) ?? "")?.[1];
  return setting === undefined ? undefined : setting === "true" ? "systemd" : "cgroupfs";
}

/** True when nodes reach the API servers through coxswain-services, not through the cluster's own name or load balancer. */
export const usesApiProxy = ({ controlPlaneEndpoint }: ClusterSettings): boolean => controlPlaneEndpoint === "";

/** URL of the part api-proxy of coxswain-services, for a node's programs. */
export const apiProxyUrl = "https://127.0.0.1:6444";
/** A name in every API server's certificate, also in kubeadm's. */
export const apiServerName = "kubernetes";
/** The initial list of API servers for that part, which then maintains it. */
export const apiServersFile = "/var/lib/coxswain/api-servers";

const servicesUnit = (machine: Machine, isBehindProxy: boolean): WantedFile => ({
  path: join(unitFolder, "coxswain-services.service"),
  content: unitWithFlags(shipped(machine.home, "systemd/coxswain-services.service"), {
    "cluster-cidr": machine.cluster.podSubnet,
    "cluster-dns": clusterDns(machine.cluster),
    "cluster-domain": machine.cluster.dnsDomain,
    "node-name": machine.node.name,
    // Joined nodes have self-signed serving certificates.
    "kubelet-insecure-tls": "true",
    ...(isBehindProxy && { enable: "api-proxy", "api-proxy-servers-file": apiServersFile }),
  }),
});

/**
 * Starts coxswain-services; {@link servicesConf} or the phase certs has written its kubeconfig.
 * @param isBehindProxy whether the machine's programs reach the API through it
 */
export const servicesStep = (isBehindProxy: boolean): Step<Machine> => ({
  name: "coxswain-services",
  missing: async (machine) => [
    ...missingFiles([servicesUnit(machine, isBehindProxy)]),
    ...(await stoppedUnits(["coxswain-services"])),
  ],
  async run(machine) {
    writeFiles([servicesUnit(machine, isBehindProxy)]);
    await startUnits(["coxswain-services"]);
  },
});

/** How a kubeconfig reaches the cluster. */
export interface Reached {
  readonly server: string;
  /** The name in the server's certificate, if it differs from the URL's host. */
  readonly serverName?: string;
  readonly caPem: string;
}

/** A kubeconfig as JSON text in which `user` presents the token. */
export function tokenKubeconfig({ server, serverName, caPem }: Reached, user: string, token: string): string {
  const cluster = {
    server,
    ...(serverName !== undefined && { "tls-server-name": serverName }),
    "certificate-authority-data": Buffer.from(caPem).toString("base64"),
  };
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "kubernetes", cluster }],
    users: [{ name: user, user: { token } }],
    contexts: [{ name: `${user}@kubernetes`, context: { cluster: "kubernetes", user } }],
    "current-context": `${user}@kubernetes`,
  };
  return `${JSON.stringify(config, undefined, 2)}\n`;
}

export const bootstrapConf = join(folder, "bootstrap-kubelet.conf");
export const kubeletConf = join(folder, "kubelet.conf");
export const servicesConf = join(folder, "services.conf");
export const authorityFile = pkiFile("ca.crt");
