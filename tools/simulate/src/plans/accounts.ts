import { configMaps, namespaces, secrets, serviceAccounts } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newCa, newServiceAccountKey } from "@coxswain/apimachinery/serving/certificates";
import { temporaryFiles } from "../cluster/temporary-files.ts";
import type { Stored } from "../invariants/view.ts";
import { allFaults, lasting, namespace, type Plan } from "./plan.ts";

let flags: Promise<readonly string[]> | undefined;

async function prepare(): Promise<readonly string[]> {
  const { certPem } = await newCa({ commonName: "simulated" });
  const files = temporaryFiles({ "ca.pem": certPem, "sa.key": newServiceAccountKey().keyPem });
  return [`--root-ca-file=${files["ca.pem"]}`, `--service-account-private-key-file=${files["sa.key"]}`];
}

/** Each namespace has the service account that Pods use, with its own token, and the cluster's CA; all are recreated after deletion. */
export const accountsPlan: Plan = {
  name: "accounts",
  controllers: ["serviceaccount", "serviceaccount-token", "root-ca-cert-publisher"],
  faults: allFaults,
  rules: lasting,
  managerFlags() {
    flags ??= prepare();
    return flags;
  },
  async act(user) {
    await user.create(namespaces, { metadata: { name: "team" } });
    await user.pause(user.random() * 6_000);
    await user.remove(serviceAccounts, "default");
    await user.pause(user.random() * 4_000);
    await user.remove(configMaps, "kube-root-ca.crt");
    await user.pause(user.random() * 4_000);
    const { items } = await user.client.list<Stored>(secrets, { namespace }).catch(() => ({ items: [] }));
    for (const { metadata } of items.slice(0, 1)) await user.remove(secrets, metadata.name ?? "");
  },
  missing(view) {
    const accounts = view.all("serviceaccounts");
    const tokens = view.all("secrets") as (Stored & { type?: string; data?: Record<string, string> })[]; // cast: objects of that resource
    for (const { metadata } of view.all("namespaces")) {
      const name = metadata.name ?? "";
      const account = accounts.find((one) => one.metadata.namespace === name && one.metadata.name === "default");
      if (account === undefined) return `${name} has no account`;
      const own = tokens.filter(
        ({ data, metadata }) => metadata.annotations?.[uidAnnotation] === account.metadata.uid && data?.["token"],
      );
      if (own.length === 0) return `the account of ${name} has no token`;
      const published = view.get("configmaps", `${name}/kube-root-ca.crt`) as { data?: Record<string, string> } | undefined; // cast: an object of that resource
      if (!published?.data?.["ca.crt"]?.startsWith("-----BEGIN CERTIFICATE-----")) return `${name} has not the CA`;
    }
    const uids = new Set(accounts.map(({ metadata }) => metadata.uid));
    const left = tokens.find(({ metadata }) => !uids.has(metadata.annotations?.[uidAnnotation] ?? ""));
    return left === undefined ? undefined : `the token ${left.metadata.name} is left without its account`;
  },
};

const uidAnnotation = "kubernetes.io/service-account.uid";
