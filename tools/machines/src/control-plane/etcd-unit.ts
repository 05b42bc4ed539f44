import { join } from "node:path";
import type { ClusterSettings, NodeSettings } from "../config/settings.ts";
import type { WantedFile } from "../host/files.ts";
import { unitFolder } from "../host/systemd.ts";
import { flagWords, header, quoted } from "../host/units.ts";
import { etcdFlags, type InitialCluster } from "./flags.ts";

export const etcdDropIn = join(unitFolder, "etcd.service.d", "10-coxswain.conf");

/** A drop-in for the distribution's unit of etcd, which has its own user, with kubeadm's flags instead of its environment. Pure. */
export function etcdUnit(cluster: ClusterSettings, node: NodeSettings, initial: InitialCluster, program: string): WantedFile {
  const words = [program, ...flagWords(etcdFlags(cluster, node, initial)).map(quoted)];
  const content = `${header}[Unit]
StartLimitIntervalSec=0

[Service]
Environment=
EnvironmentFile=
ExecStart=
ExecStart=${words.join(" \\\n  ")}
Restart=always
RestartSec=5
# A member waits for the others.
TimeoutStartSec=infinity
`;
  return { path: etcdDropIn, content };
}

/** The initial members in the drop-in. Pure. @returns undefined for none */
export function initialClusterIn(dropIn = ""): InitialCluster | undefined {
  const [, list] = /--initial-cluster=(\S+)/.exec(dropIn) ?? [];
  const [, state] = /--initial-cluster-state=(new|existing)/.exec(dropIn) ?? [];
  if (list === undefined || state === undefined) return undefined;
  const members = list.split(",").map((member) => {
    const at = member.indexOf("=");
    return [member.slice(0, at), member.slice(at + 1)] as const;
  });
  return { state: state as InitialCluster["state"], members: Object.fromEntries(members) }; // cast: one of two words, checked above
}
