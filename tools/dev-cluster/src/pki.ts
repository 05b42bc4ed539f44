import { statSync } from "node:fs";
import { join } from "node:path";
import { describeMade, describeRenewed } from "@coxswain/pki/command";
import { PkiError } from "@coxswain/pki/files";
import { expiredCertificates } from "@coxswain/pki/inventory";
import { makeMissing } from "@coxswain/pki/make";
import type { KubeconfigName, PkiPlan } from "@coxswain/pki/plan";
import { renewExpiring } from "@coxswain/pki/renew";
import { Failure } from "./failure.ts";
import { processState } from "./processes.ts";
import type { Settings } from "./settings.ts";

export { makeMissing } from "@coxswain/pki/make";
export { type KubeconfigName, kubeletClientName } from "@coxswain/pki/plan";

export const pkiFile = (settings: Settings, file: string): string => join(settings.state, "pki", file);
export const kubeconfigFile = ({ state }: Pick<Settings, "state">, name: KubeconfigName): string => join(state, `${name}.conf`);

export const pkiPlan = (settings: Settings): PkiPlan => ({
  folder: settings.state,
  nodeName: settings.nodeName,
  apiserverNames: [settings.nodeAddress, settings.firstServiceAddress],
  etcdNames: [],
  kubeletNames: [settings.nodeAddress],
  // Not system:masters: `up` binds this client to the kubelet API role only.
  kubeletClientGroups: [],
  server: () => `https://127.0.0.1:${settings.ports.apiserver}`,
  isEarlierServer: (url) => /^https:\/\/127\.0\.0\.1:\d+$/.test(url),
});

/** Up to this number, written files are listed individually. */
const mostLines = 4;

/**
 * Creates missing certificates and kubeconfigs before the daemons start, and renews expired and expiring ones.
 * @returns a line for each file written
 * @throws Failure listing what cannot be created or renewed
 */
export async function prepareCertificates(settings: Settings): Promise<string[]> {
  const plan = pkiPlan(settings);
  try {
    const made = await makeMissing(plan);
    const renewed = await renewExpiring(plan);
    const all = describeMade(made);
    // On the first start all files are new; print a summary.
    const news = all.length > mostLines ? [`made ${all.length} certificates, keys and kubeconfigs in ${settings.state}`] : all;
    return renewed.paths.length === 0 ? news : [...news, ...describeRenewed(renewed)];
  } catch (err) {
    throw err instanceof PkiError ? new Failure(err.message) : err;
  }
}

/** Processes whose kubeconfig may name another server after `up`, which they read only at startup. */
const readersAtStart: readonly [KubeconfigName, string][] = [
  ["controller-manager", "kube-controller-manager"],
  ["scheduler", "kube-scheduler"],
  ["kubelet", "kubelet"],
  ["services", "coxswain-services"],
];

/** Names of running processes whose kubeconfig was written after they started. */
export function withOldKubeconfig(settings: Pick<Settings, "state">): string[] {
  return readersAtStart.flatMap(([kubeconfig, name]) => {
    const written = statSync(kubeconfigFile(settings, kubeconfig), { throwIfNoEntry: false })?.mtimeMs ?? 0;
    const started = processState(settings, name);
    return started?.phase === "running" && written > started.since ? [name] : [];
  });
}

/** Describes expired certificates, for `status` and for failures of `up`; undefined when there are none. */
export function certificateProblem(settings: Settings): string | undefined {
  const expired = expiredCertificates(pkiPlan(settings));
  return expired.length === 0
    ? undefined
    : `${expired.join("\n")}\nrenew them: ./cox certs renew${settings.name === "default" ? "" : ` --name ${settings.name}`}`;
}
