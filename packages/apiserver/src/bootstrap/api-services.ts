/**
 * An APIService for each group version that this server answers itself, so that `kubectl get apiservices` shows them and
 * their order: what the aggregator's autoregistration leaves behind. One that exists is left as it is; one that an earlier
 * start made for a version that is not served any more is taken away.
 * Source: cmd/kube-apiserver/app/aggregator.go apiVersionPriorities, k8s.io/kube-aggregator pkg/controllers/autoregister
 */
import type { Client } from "@coxswain/apimachinery/client/client";
import { isAlreadyExists, isNotFound } from "@coxswain/apimachinery/errors/predicates";
import type { GroupVersion } from "@coxswain/apimachinery/meta/group-version";
import type { APIService } from "@coxswain/apimachinery/schema/kinds/apiregistration/v1";
import { apiServices } from "@coxswain/apimachinery/schema/kinds/resources";
import { forEachLimited } from "./ensure.ts";

/** Greater comes first in discovery. */
const groupPriorities: Readonly<Record<string, number>> = {
  "": 18_000,
  apps: 17_800,
  "events.k8s.io": 17_750,
  "authentication.k8s.io": 17_700,
  "authorization.k8s.io": 17_600,
  autoscaling: 17_500,
  batch: 17_400,
  "certificates.k8s.io": 17_300,
  "networking.k8s.io": 17_200,
  policy: 17_100,
  "rbac.authorization.k8s.io": 17_000,
  "storage.k8s.io": 16_800,
  "apiextensions.k8s.io": 16_700,
  "admissionregistration.k8s.io": 16_700,
  "scheduling.k8s.io": 16_600,
  "coordination.k8s.io": 16_500,
  "node.k8s.io": 16_300,
  "discovery.k8s.io": 16_200,
  "flowcontrol.apiserver.k8s.io": 16_100,
  "internal.apiserver.k8s.io": 16_000,
};

/** Where a version's place in its group is another than 15 for stable, 9 for beta and 1 for alpha versions. */
const versionPriorities: Readonly<Record<string, number>> = {
  "/v1": 1,
  "events.k8s.io/v1beta1": 5,
  "autoscaling/v2": 30,
  "autoscaling/v2beta2": 1,
  "discovery.k8s.io/v1beta1": 12,
  "flowcontrol.apiserver.k8s.io/v1beta2": 12,
  "internal.apiserver.k8s.io/v1alpha1": 9,
};

/** The aggregator has no APIService for itself. */
const aggregatorGroup = "apiregistration.k8s.io";
const automanaged = "kube-aggregator.kubernetes.io/automanaged";
const atOnce = 8;

export async function ensureApiServices(client: Client, served: readonly GroupVersion[], signal: AbortSignal): Promise<void> {
  const { items } = await client.list<APIService>(apiServices, {}, { signal });
  const existing = new Set(items.map(({ metadata }) => metadata.name));
  const local = served.filter(({ group }) => group !== aggregatorGroup).map(localService);
  const wanted = new Set(local.map(({ metadata }) => metadata.name));
  const missing = local.filter(({ metadata }) => !existing.has(metadata.name));
  const stale = items.filter(({ metadata }) => metadata.labels?.[automanaged] === "onstart" && !wanted.has(metadata.name));
  await forEachLimited(missing, atOnce, (service) => create(client, service, signal));
  await forEachLimited(stale, atOnce, (service) => remove(client, service, signal));
}

async function create(client: Client, wanted: APIService, signal: AbortSignal): Promise<void> {
  try {
    await client.create<APIService>(apiServices, wanted, { signal });
  } catch (err) {
    if (!isAlreadyExists(err)) throw err; // another server was first
  }
}

async function remove(client: Client, { metadata }: APIService, signal: AbortSignal): Promise<void> {
  try {
    await client.delete(apiServices, { name: metadata.name as string }, { signal });
  } catch (err) {
    if (!isNotFound(err)) throw err;
  }
}

function localService({ group, version }: GroupVersion): APIService {
  const stage = version.includes("alpha") ? 1 : version.includes("beta") ? 9 : 15;
  return {
    metadata: { name: `${version}.${group}`, labels: { [automanaged]: "onstart" } },
    spec: {
      group,
      version,
      groupPriorityMinimum: groupPriorities[group] ?? 1000,
      versionPriority: versionPriorities[`${group}/${version}`] ?? stage,
    },
  };
}
