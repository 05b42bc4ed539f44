/** Steps of a machine that joins: it gets its kubeconfigs by a token. */
import { existsSync, rmSync } from "node:fs";
import type { Discovered } from "../cluster/discovery.ts";
import { missingFiles, readIfThere, writeFiles } from "../host/files.ts";
import { until } from "../host/until.ts";
import type { Machine } from "../machine.ts";
import type { Step } from "../steps.ts";
import { authorityFile, bootstrapConf, kubeletConf, servicesConf, tokenKubeconfig } from "./steps.ts";

/** What the token could read. */
export interface Credentials extends Discovered {
  /** The bootstrap token. */
  readonly token: string;
  /** Of the ServiceAccount coxswain-services; undefined where the cluster has none. */
  readonly servicesToken: string | undefined;
}

const files = ({ server, caPem, token, servicesToken }: Credentials) => [
  { path: authorityFile, content: caPem },
  // With its certificate the kubelet needs no token.
  ...(existsSync(kubeletConf)
    ? []
    : [{ path: bootstrapConf, content: tokenKubeconfig(server, caPem, "tls-bootstrap-token-user", token), mode: 0o600 }]),
  ...(servicesToken === undefined
    ? []
    : [{ path: servicesConf, content: tokenKubeconfig(server, caPem, "coxswain-services", servicesToken), mode: 0o600 }]),
];

/** The cluster's authority and kubeconfigs with tokens. */
export const credentialsStep = (credentials: Credentials): Step<Machine> => ({
  name: "credentials",
  missing: () => missingFiles(files(credentials)),
  run: () => writeFiles(files(credentials)),
});

const bootstrapMs = 300_000;

/** The kubelet asks for its certificate; then the token is of no more use to it. */
export const tlsBootstrapStep: Step<Machine> = {
  name: "kubelet-bootstrap",
  missing: () =>
    existsSync(bootstrapConf) || !existsSync(kubeletConf)
      ? [`have the kubelet ask for its certificate, and remove ${bootstrapConf}`]
      : [],
  async run() {
    await until(async () => readIfThere(kubeletConf) !== undefined, {
      timeoutMs: bootstrapMs,
      what: "the kubelet to get its certificate",
      remedy: "journalctl --unit kubelet; kubectl get certificatesigningrequests",
    });
    rmSync(bootstrapConf, { force: true });
  },
};
