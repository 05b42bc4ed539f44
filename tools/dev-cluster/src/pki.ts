import { join } from "node:path";
import { type Made, makeMissing } from "@coxswain/pki/make";
import type { KubeconfigName, PkiPlan } from "@coxswain/pki/plan";
import type { Settings } from "./settings.ts";

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

/** @throws PkiError with what cannot be made */
export const writePki = (plan: PkiPlan): Promise<Made[]> => makeMissing(plan);
