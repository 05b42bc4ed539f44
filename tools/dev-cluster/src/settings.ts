import { createHash } from "node:crypto";
import { hostname, networkInterfaces } from "node:os";
import { join, resolve } from "node:path";

/** Everything that tells one local cluster from another; two with different state folders and ports live side by side. */
export interface Settings {
  /** The repository. */
  readonly root: string;
  /** All files of the cluster; `.cox` in the repository. */
  readonly state: string;
  /** Sockets; short, since a socket's path must stay under 108 bytes. */
  readonly run: string;
  /** Six hex digits that name this cluster's bridge and chains. */
  readonly id: string;
  readonly asRoot: boolean;
  readonly nodeName: string;
  /** Where pods reach the API server and the API server reaches the node. */
  readonly nodeAddress: string;
  readonly podCidr: string;
  readonly podGateway: string;
  readonly serviceCidr: string;
  readonly firstServiceAddress: string;
  readonly bridge: string;
  /** The API server writes `logs/audit.log` by this policy; undefined: no audit. */
  readonly auditPolicy: string | undefined;
  /** etcd does not wait for the disk; what the machine has not written when it loses power is lost. */
  readonly etcdWithoutSync: boolean;
  readonly ports: Readonly<Record<PortName, number>>;
}

export const portNames = [
  "apiserver",
  "etcd",
  "etcdPeer",
  "controllerManager",
  "scheduler",
  "kubelet",
  "kubeletHealthz",
] as const;
export type PortName = (typeof portNames)[number];

const defaultPorts: Readonly<Record<PortName, number>> = {
  apiserver: 6443,
  etcd: 2379,
  etcdPeer: 2380,
  controllerManager: 10257,
  scheduler: 10259,
  kubelet: 10250,
  kubeletHealthz: 10248,
};

/**
 * Reads `COX_STATE` (folder), `COX_NODE_NAME`, `COX_POD_NETWORK` and `COX_SERVICE_NETWORK` (the first two numbers of a /16),
 * `COX_AUDIT_POLICY` (file), `COX_ETCD_WITHOUT_SYNC` (anything), and `COX_PORT_APISERVER`, `COX_PORT_ETCD`,
 * `COX_PORT_ETCDPEER`, … (ports).
 */
export function readSettings(root: string, env: NodeJS.ProcessEnv = process.env): Settings {
  const state = resolve(root, env["COX_STATE"] ?? ".cox");
  const id = createHash("sha256").update(state).digest("hex").slice(0, 6);
  const asRoot = process.getuid?.() === 0;
  const podNetwork = env["COX_POD_NETWORK"] ?? "10.244";
  const serviceNetwork = env["COX_SERVICE_NETWORK"] ?? "10.96";
  const podGateway = `${podNetwork}.0.1`;
  const port = (name: PortName): [PortName, number] => [
    name,
    Number(env[`COX_PORT_${name.toUpperCase()}`] ?? defaultPorts[name]),
  ];
  return {
    root,
    state,
    run: asRoot ? `/run/cox-${id}` : join(env["XDG_RUNTIME_DIR"] ?? "/tmp", `cox-${id}`),
    id,
    asRoot,
    nodeName: (env["COX_NODE_NAME"] ?? hostname()).toLowerCase(),
    // The bridge's own address stays the same whatever network the machine is on, and pods always reach it.
    nodeAddress: asRoot ? podGateway : (outwardAddress() ?? "127.0.0.1"),
    podCidr: `${podNetwork}.0.0/16`,
    podGateway,
    serviceCidr: `${serviceNetwork}.0.0/16`,
    firstServiceAddress: `${serviceNetwork}.0.1`,
    bridge: `cox${id}`,
    auditPolicy: env["COX_AUDIT_POLICY"] === undefined ? undefined : resolve(root, env["COX_AUDIT_POLICY"]),
    etcdWithoutSync: env["COX_ETCD_WITHOUT_SYNC"] !== undefined,
    ports: Object.fromEntries(portNames.map(port)) as Record<PortName, number>,
  };
}

function outwardAddress(): string | undefined {
  return Object.values(networkInterfaces())
    .flat()
    .find((address) => address !== undefined && address.family === "IPv4" && !address.internal)?.address;
}
