import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Client, newClient } from "@coxswain/apimachinery/client/client";
import { userAgentOf } from "@coxswain/apimachinery/client/config";
import { loadKubeconfig } from "@coxswain/apimachinery/client/kubeconfig";
import { causesOf, messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { type ClusterSettings, folder, type NodeSettings, urlOf } from "./config/settings.ts";
import { Failure } from "./failure.ts";

/** Context of all steps on a machine. */
export interface Machine {
  /** Folder of the archive: `/opt/coxswain`. */
  readonly home: string;
  readonly cluster: ClusterSettings;
  readonly node: NodeSettings;
  readonly print: (line: string) => void;
}

export const adminConf = join(folder, "admin.conf");
export const pkiFile = (name: string): string => join(folder, "pki", name);

/** Reads a file of the archive. @throws Failure */
export function shipped(home: string, path: string): string {
  try {
    return readFileSync(join(home, path), "utf8");
  } catch (err) {
    throw new Failure(`the archive in ${home} is incomplete: ${messageOf(err)}`);
  }
}

/**
 * A client from a kubeconfig. @param master overrides its server address
 * @throws Failure
 */
export async function clientBy(kubeconfig: string, master?: string): Promise<Client> {
  try {
    const config = await loadKubeconfig(kubeconfig, master === undefined ? {} : { master });
    return newClient({ ...config, qps: -1, userAgent: userAgentOf("coxswain") });
  } catch (err) {
    throw new Failure(causesOf(err));
  }
}

/**
 * Calls `use` with an administrator's client of this machine's API server; undefined while there is no kubeconfig, as in a dry
 * run.
 */
export async function asAdmin<T>({ node }: Machine, use: (client: Client | undefined) => Promise<T>): Promise<T> {
  const client = existsSync(adminConf) ? await clientBy(adminConf, urlOf(node.advertiseAddress, node.bindPort)) : undefined;
  try {
    return await use(client);
  } finally {
    client?.close();
  }
}

/** As {@link asAdmin}, but a missing kubeconfig is a Failure. */
export const asAdminNow = <T>(machine: Machine, use: (client: Client) => Promise<T>): Promise<T> =>
  asAdmin(machine, async (client) => {
    if (client === undefined) throw new Failure(`${adminConf} is missing: this machine is not part of a control plane`);
    return use(client);
  });
