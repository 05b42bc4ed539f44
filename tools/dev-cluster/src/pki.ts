import { join } from "node:path";
import { describeMade, describeRenewed } from "@coxswain/pki/command";
import { PkiError } from "@coxswain/pki/files";
import { expiredCertificates } from "@coxswain/pki/inventory";
import { makeMissing } from "@coxswain/pki/make";
import type { KubeconfigName, PkiPlan } from "@coxswain/pki/plan";
import { renewExpiring } from "@coxswain/pki/renew";
import { Failure } from "./failure.ts";
import type { Settings } from "./settings.ts";

export { makeMissing } from "@coxswain/pki/make";
export { type KubeconfigName, kubeletClientName } from "@coxswain/pki/plan";

export const pkiFile = (settings: Settings, file: string): string => join(settings.state, "pki", file);
export const kubeconfigFile = (settings: Settings, name: KubeconfigName): string => join(settings.state, `${name}.conf`);

export const pkiPlan = (settings: Settings): PkiPlan => ({
  folder: settings.state,
  nodeName: settings.nodeName,
  apiserverNames: [settings.nodeAddress, settings.firstServiceAddress],
  etcdNames: [],
  kubeletNames: [settings.nodeAddress],
  // Nobody but the administrator is in system:masters: `up` gives this one the kubelet's API and no more.
  kubeletClientGroups: [],
  server: () => `https://127.0.0.1:${settings.ports.apiserver}`,
  isEarlierServer: (url) => /^https:\/\/127\.0\.0\.1:\d+$/.test(url),
});

/** Files that `up` names one by one. */
const mostLines = 4;

/**
 * Certificates and kubeconfigs before the daemons start: makes what is missing and renews what has expired or ends soon.
 * @returns a line for each file that was written, and names of daemons that have to be started again if they run: they read their
 * kubeconfig only once
 * @throws Failure with what cannot be made or renewed
 */
export async function prepareCertificates(settings: Settings): Promise<{ lines: string[]; restart: readonly string[] }> {
  const plan = pkiPlan(settings);
  try {
    const made = await makeMissing(plan);
    const renewed = await renewExpiring(plan);
    const all = describeMade(made);
    // All of them on a first start, which is no news.
    const news = all.length > mostLines ? [`made ${all.length} certificates, keys and kubeconfigs in ${settings.state}`] : all;
    const lines = renewed.paths.length === 0 ? news : [...news, ...describeRenewed({ ...renewed, restart: [] })]; // `up` starts them
    return { lines, restart: renewed.restart };
  } catch (err) {
    throw err instanceof PkiError ? new Failure(err.message) : err;
  }
}

/** Why nothing works when certificates have expired: for `up`, where it would otherwise give up waiting, and `status`. */
export function certificateProblem(settings: Settings): string | undefined {
  const expired = expiredCertificates(pkiPlan(settings));
  return expired.length === 0
    ? undefined
    : `${expired.join("\n")}\nrenew them: ./cox certs renew${settings.name === "default" ? "" : ` --name ${settings.name}`}`;
}
