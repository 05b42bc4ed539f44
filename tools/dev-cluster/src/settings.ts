import { createHash } from "node:crypto";
import { hostname, networkInterfaces } from "node:os";
import { join, resolve } from "node:path";
import { addressAt, parseCidr } from "./cidr.ts";
import { Failure, UsageFailure } from "./failure.ts";

/** Settings of a local cluster; clusters with different state folders, ports and networks can run side by side. */
export interface Settings {
  /** Root of the repository. */
  readonly root: string;
  /** Value of `--name`; default `default`. */
  readonly name: string;
  /** State folder: `.cox` in the repository, for named clusters `.cox/clusters/<name>`. */
  readonly state: string;
  /** Folder of sockets; short, because socket paths are limited to 108 bytes. */
  readonly run: string;
  /** Six hex digits, used in the names of the cluster's bridge and chains. */
  readonly id: string;
  readonly asRoot: boolean;
  /** Also runs containerd, the kubelet and coxswain-services; requires root. */
  readonly withNode: boolean;
  /** Nodes without containers, in place of one; 0: none. Needs no root. */
  readonly fakeNodes: number;
  readonly nodeName: string;
  /** Address of the API server for pods, and of the node for the API server. */
  readonly nodeAddress: string;
  readonly podCidr: string;
  readonly podGateway: string;
  readonly serviceCidr: string;
  readonly firstServiceAddress: string;
  /** Cluster IP of the Service `kube-dns`, the tenth of the range as with kubeadm. */
  readonly dnsAddress: string;
  readonly bridge: string;
  /** Audit policy file; the API server then writes `logs/audit.log`. undefined: no audit. */
  readonly auditPolicy: string | undefined;
  /** etcd does not fsync; data may be lost on a power failure. */
  readonly etcdWithoutSync: boolean;
  readonly ports: Readonly<Record<PortName, number>>;
  /** User flags for a process as `--name=value`; see `withExtraArgs`. */
  readonly extraArgs: Readonly<Record<ConfigurableProcess, readonly string[]>>;
}

export const portNames = [
  "apiserver",
  "etcd",
  "etcdPeer",
  "controllerManager",
  "scheduler",
  "kubelet",
  "kubeletHealthz",
  "services",
] as const;
export type PortName = (typeof portNames)[number];

export const configurableProcesses = [
  "etcd",
  "containerd",
  "kube-apiserver",
  "kube-controller-manager",
  "kube-scheduler",
  "kubelet",
  "coxswain-services",
] as const;
/** A process whose flags the user can extend. */
export type ConfigurableProcess = (typeof configurableProcesses)[number];

/** Settings that must be chosen once per cluster: by the user, or by `up` according to what is free. */
export interface Choices {
  readonly nodeName: string;
  readonly podCidr: string;
  readonly serviceCidr: string;
  readonly withNode: boolean;
  readonly fakeNodes: number;
  /** Path; empty for none. */
  readonly auditPolicy: string;
  readonly etcdWithoutSync: boolean;
  readonly ports: Readonly<Record<PortName, number>>;
  readonly extraArgs: Readonly<Record<ConfigurableProcess, readonly string[]>>;
}

/** Settings given by flags and environment variables; the others are chosen automatically. */
export interface RequestedChoices extends Partial<Omit<Choices, "ports" | "extraArgs">> {
  readonly ports?: Readonly<Partial<Record<PortName, number>>>;
  readonly extraArgs?: Readonly<Partial<Record<ConfigurableProcess, readonly string[]>>>;
}

const noExtraArgs: Choices["extraArgs"] = {
  etcd: [],
  containerd: [],
  "kube-apiserver": [],
  "kube-controller-manager": [],
  "kube-scheduler": [],
  kubelet: [],
  "coxswain-services": [],
};

/** Preferred values when the user gives none. */
export const defaultChoices = (): Choices => ({
  nodeName: hostname().toLowerCase(),
  podCidr: "10.244.0.0/16",
  serviceCidr: "10.96.0.0/16",
  withNode: true,
  fakeNodes: 0,
  auditPolicy: "",
  etcdWithoutSync: false,
  ports: {
    apiserver: 6443,
    etcd: 2379,
    etcdPeer: 2380,
    controllerManager: 10257,
    scheduler: 10259,
    kubelet: 10250,
    kubeletHealthz: 10248,
    services: 10261,
  },
  extraArgs: noExtraArgs,
});

/** Overrides choices by requested settings; extra flags are replaced per process. */
export const withRequested = (choices: Choices, requested: RequestedChoices): Choices => ({
  ...choices,
  ...requested,
  ports: { ...choices.ports, ...requested.ports },
  extraArgs: { ...choices.extraArgs, ...requested.extraArgs },
});

/** Later choices override earlier ones, ports and arguments one by one. */
export const mergeRequested = (earlier: RequestedChoices, later: RequestedChoices): RequestedChoices => ({
  ...earlier,
  ...later,
  ports: { ...earlier.ports, ...later.ports },
  extraArgs: { ...earlier.extraArgs, ...later.extraArgs },
});

const nameForm = /^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$/;

/** State folder of a cluster. `COX_STATE` replaces `.cox`. @throws UsageFailure for an invalid name. */
export function stateFolder(root: string, name: string, env: NodeJS.ProcessEnv = process.env): string {
  if (!nameForm.test(name))
    throw new UsageFailure(`${JSON.stringify(name)} cannot name a cluster: lower-case letters, digits and dashes, at most 40`);
  const base = resolve(root, env["COX_STATE"] ?? ".cox");
  return name === "default" ? base : join(base, "clusters", name);
}

/** Derives all settings of the cluster in a state folder. @param user the ID of the user who runs it */
export function newSettings(
  root: string,
  name: string,
  state: string,
  choices: Choices,
  env = process.env,
  user = process.getuid?.(),
): Settings {
  const id = createHash("sha256").update(state).digest("hex").slice(0, 6);
  const asRoot = user === 0;
  // The record of an earlier version may lack it.
  const { fakeNodes = 0 } = choices;
  const withNode = asRoot && choices.withNode && fakeNodes === 0;
  const pods = parseCidr(choices.podCidr);
  const services = parseCidr(choices.serviceCidr);
  if (pods === undefined || services === undefined)
    throw new Failure(`${choices.podCidr} or ${choices.serviceCidr} is not an IPv4 network`);
  const podGateway = addressAt(pods, 1);
  return {
    root,
    name,
    state,
    run: asRoot ? `/run/cox-${id}` : join(env["XDG_RUNTIME_DIR"] ?? "/tmp", `cox-${id}`),
    id,
    asRoot,
    withNode,
    fakeNodes,
    nodeName: choices.nodeName,
    // The bridge's address does not depend on the machine's current network, and is always reachable from pods.
    nodeAddress: withNode ? podGateway : (outwardAddress() ?? "127.0.0.1"),
    podCidr: choices.podCidr,
    podGateway,
    serviceCidr: choices.serviceCidr,
    firstServiceAddress: addressAt(services, 1),
    dnsAddress: addressAt(services, 10),
    bridge: `cox${id}`,
    auditPolicy: choices.auditPolicy === "" ? undefined : resolve(root, choices.auditPolicy),
    etcdWithoutSync: choices.etcdWithoutSync,
    // The record of an earlier version may lack what came later.
    ports: { ...defaultChoices().ports, ...choices.ports },
    extraArgs: { ...noExtraArgs, ...choices.extraArgs },
  };
}

/**
 * Reads `COX_NODE_NAME`, `COX_POD_NETWORK` and `COX_SERVICE_NETWORK` (a CIDR, or the first two numbers of a /16),
 * `COX_AUDIT_POLICY` (file), `COX_ETCD_WITHOUT_SYNC` (any value), and `COX_PORT_APISERVER`, `COX_PORT_ETCD`,
 * `COX_PORT_ETCDPEER`, … (ports). Empty variables count as unset.
 */
export function requestedByVariables(env: NodeJS.ProcessEnv): RequestedChoices {
  const text = <K extends string>(key: K, variable: string, read = (value: string) => value): { [P in K]?: string } =>
    env[variable] ? ({ [key]: read(env[variable]) } as { [P in K]: string }) : {}; // cast: computed keys widen to string
  const network = (value: string): string => (/^\d+\.\d+$/.test(value) ? `${value}.0.0/16` : value);
  const ports: Partial<Record<PortName, number>> = {};
  for (const name of portNames) {
    const value = env[portVariable(name)];
    if (value) ports[name] = Number(value);
  }
  return {
    ...text("nodeName", "COX_NODE_NAME"),
    ...text("podCidr", "COX_POD_NETWORK", network),
    ...text("serviceCidr", "COX_SERVICE_NETWORK", network),
    ...text("auditPolicy", "COX_AUDIT_POLICY"),
    ...(env["COX_ETCD_WITHOUT_SYNC"] && { etcdWithoutSync: true }),
    ...(Object.keys(ports).length > 0 && { ports }),
  };
}

export const portVariable = (name: PortName): string => `COX_PORT_${name.toUpperCase()}`;

/** Appends the user's flags; a flag given by the user removes ours of the same name. */
export function withExtraArgs(ours: readonly string[], extra: readonly string[]): string[] {
  const nameOf = (arg: string): string => arg.split("=", 1)[0]!;
  const given = new Set(extra.map(nameOf));
  return [...ours.filter((arg) => !given.has(nameOf(arg))), ...extra];
}

function outwardAddress(): string | undefined {
  return Object.values(networkInterfaces())
    .flat()
    .find((address) => address !== undefined && address.family === "IPv4" && !address.internal)?.address;
}
