import type { PortName } from "./settings.ts";

/** Flags of `up` by setting. */
export const flagOf = {
  nodeName: "--node-name",
  podCidr: "--pod-network-cidr",
  serviceCidr: "--service-cidr",
  withNode: "--no-node",
  fakeNodes: "--fake-nodes",
  auditPolicy: "--audit-policy-file",
  etcdWithoutSync: "--etcd-unsafe-no-fsync",
} as const;

/** `--etcd-peer-port` */
export const portFlag = (name: PortName): string => `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}-port`;
