/** The API server of this machine. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseYaml } from "@coxswain/apimachinery/objects/codec/yaml";
import { type FlagMap, urlOf } from "../config/settings.ts";
import { isOurs, readIfThere } from "../host/files.ts";
import { unitFolder } from "../host/systemd.ts";
import { flagsIn, unitFlags } from "../host/units.ts";
import { adminConf, clientBy } from "../machine.ts";
import { kubeletFolder } from "../node/kubelet-config.ts";
import { etcdDropIn } from "./etcd-unit.ts";
import { manifestFolder } from "./static-pods.ts";

const unit = join(unitFolder, "kube-apiserver.service");
export const serverManifest = join(manifestFolder, "kube-apiserver.yaml");

/** True when the API server runs as a unit. */
export const isControlPlane = (): boolean => existsSync(unit);

/** `https://10.0.0.1:6443`, of a unit or a static pod */
export function ownServer(): string {
  const flags = isControlPlane() ? unitFlags(readFileSync(unit, "utf8")) : manifestFlags(readIfThere(serverManifest) ?? "");
  return urlOf(flags["advertise-address"] ?? "127.0.0.1", Number(flags["secure-port"] ?? 6443));
}

const requestMs = 10_000;

/**
 * Whether the API server of this machine answers `/readyz` with 200. @throws when it cannot be reached or admin.conf cannot be
 * read
 */
export async function isOwnApiReady(): Promise<boolean> {
  const client = await clientBy(adminConf, ownServer());
  try {
    return (await client.raw("GET", "/readyz", { signal: AbortSignal.timeout(requestMs) })).status === 200;
  } finally {
    client.close();
  }
}

interface OwnControlPlane {
  readonly runsAs: "units" | "static pods";
  /** Flags of the API server; empty before it is set up. */
  readonly serverFlags: FlagMap;
  /** `kubeadm-flags.env` */
  readonly kubeletEnvironment: string | undefined;
}

/** The control plane that init or join has set up on this machine, possibly incomplete; undefined without one. */
export function ownControlPlane(): OwnControlPlane | undefined {
  const kubeletEnvironment = readIfThere(join(kubeletFolder, "kubeadm-flags.env"));
  const manifest = readIfThere(serverManifest);
  if (isOurs(unit) || isOurs(etcdDropIn))
    return { runsAs: "units", serverFlags: unitFlags(readIfThere(unit) ?? ""), kubeletEnvironment };
  // Static pods of kubeadm come with another unit of the kubelet.
  if (manifest === undefined || !isOurs(join(unitFolder, "kubelet.service"))) return undefined;
  return { runsAs: "static pods", serverFlags: manifestFlags(manifest), kubeletEnvironment };
}

interface Manifest {
  readonly spec?: { readonly containers?: readonly { readonly command?: readonly string[] }[] };
}

/** Flags of the first container of a static pod. */
function manifestFlags(text: string): FlagMap {
  try {
    return flagsIn((parseYaml(text) as Manifest | null)?.spec?.containers?.[0]?.command ?? []); // cast: every field is optional
  } catch {
    return {}; // a malformed manifest is written again
  }
}
