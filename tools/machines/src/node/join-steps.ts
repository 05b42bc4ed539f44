/** Steps of a joining machine, which gets its kubeconfigs with a bootstrap token. */
import { existsSync, rmSync } from "node:fs";
import type { Discovered } from "../cluster/discovery.ts";
import { missingFiles, readIfThere, type WantedFile, writeFiles } from "../host/files.ts";
import { until } from "../host/until.ts";
import type { Machine } from "../machine.ts";
import type { Step } from "../steps.ts";
import {
  apiProxyUrl,
  apiServerName,
  apiServersFile,
  authorityFile,
  bootstrapConf,
  kubeletConf,
  type Reached,
  servicesConf,
  tokenKubeconfig,
} from "./steps.ts";

/** Results of the requests made with the token. */
export interface Credentials extends Discovered {
  /** The bootstrap token. */
  readonly token: string;
  /** Token of the ServiceAccount coxswain-services; undefined when the cluster has none. */
  readonly servicesToken: string | undefined;
  /** Whether the machine's programs reach the API through coxswain-services. */
  readonly isBehindProxy: boolean;
}

function files({ server, caPem, token, servicesToken, isBehindProxy }: Credentials): WantedFile[] {
  const reached: Reached = isBehindProxy ? { server: apiProxyUrl, serverName: apiServerName, caPem } : { server, caPem };
  return [
    { path: authorityFile, content: caPem },
    // A kubelet with a client certificate needs no token.
    ...(existsSync(kubeletConf)
      ? []
      : [{ path: bootstrapConf, content: tokenKubeconfig(reached, "tls-bootstrap-token-user", token), mode: 0o600 }]),
    ...(servicesToken === undefined
      ? []
      : [{ path: servicesConf, content: tokenKubeconfig(reached, "coxswain-services", servicesToken), mode: 0o600 }]),
    // Written once; later coxswain-services maintains the list.
    ...(isBehindProxy && !existsSync(apiServersFile) ? [{ path: apiServersFile, content: `${new URL(server).host}\n` }] : []),
  ];
}

/** Writes the cluster's authority, kubeconfigs with tokens, and the list of API servers. */
export const credentialsStep = (credentials: Credentials): Step<Machine> => ({
  name: "credentials",
  missing: () => missingFiles(files(credentials)),
  run: () => writeFiles(files(credentials)),
});

const bootstrapMs = 300_000;

/** Waits until the kubelet has its certificate and no longer needs the bootstrap token. */
export const tlsBootstrapStep: Step<Machine> = {
  name: "kubelet-bootstrap",
  missing: () =>
    existsSync(bootstrapConf) || !existsSync(kubeletConf)
      ? [`have the kubelet ask for its certificate, and remove ${bootstrapConf}`]
      : [],
  run: endBootstrap,
};

/** Waits for the kubelet's certificate, then removes the bootstrap kubeconfig with its token. */
export async function endBootstrap(): Promise<void> {
  await until(async () => readIfThere(kubeletConf) !== undefined, {
    timeoutMs: bootstrapMs,
    what: "the kubelet to get its certificate",
    remedy: "journalctl --unit kubelet; kubectl get certificatesigningrequests",
  });
  rmSync(bootstrapConf, { force: true });
}
