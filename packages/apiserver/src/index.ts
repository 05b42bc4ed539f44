import { newFeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import { parseFlags } from "@coxswain/apimachinery/flags/flags";
import { discardLogger, type Logger } from "@coxswain/apimachinery/process/logging/logger";
import { configFromFlags } from "./config.ts";
import { kubeApiserver } from "./flags.ts";
import { startApiserver } from "./server.ts";

export interface KubeApiserver {
  /** `https://127.0.0.1:6443` */
  readonly url: string;
  /** Resolves when every check of /readyz passes; rejects when the server cannot start. */
  ready(signal?: AbortSignal): Promise<void>;
  /** Stops the server; connections that are still open after the grace period are closed. */
  stop(graceMs?: number): Promise<void>;
}

/**
 * The public API of `@coxswain/apiserver`: runs kube-apiserver in the caller's process.
 * @param flags as on its command line: `["--etcd-servers=http://127.0.0.1:2379", "--secure-port=6443", …]`
 * @throws Error for invalid flags
 */
export async function startKubeApiserver(
  flags: readonly string[],
  { log = discardLogger }: { readonly log?: Logger } = {},
): Promise<KubeApiserver> {
  const { values } = parseFlags(kubeApiserver.flags, flags);
  const featureGates = newFeatureGates(kubeApiserver.name, values["feature-gates"]);
  const server = await startApiserver(configFromFlags(values), { log, featureGates });
  return {
    url: server.url,
    async ready(signal) {
      await server.started;
      await server.ready(signal);
    },
    stop: (graceMs) => server.stop(graceMs),
  };
}
