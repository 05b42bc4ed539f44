/** The API server of this machine. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { urlOf } from "../config/settings.ts";
import { unitFolder } from "../host/systemd.ts";
import { unitFlags } from "../host/units.ts";
import { adminConf, clientBy } from "../machine.ts";

const unit = join(unitFolder, "kube-apiserver.service");

/** Whether it runs as a unit. */
export const isControlPlane = (): boolean => existsSync(unit);

/** `https://10.0.0.1:6443` */
export function ownServer(): string {
  const flags = unitFlags(readFileSync(unit, "utf8"));
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
