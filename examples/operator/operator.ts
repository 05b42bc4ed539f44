import {
  AppsV1Api,
  CustomObjectsApi,
  type KubeConfig,
  type KubernetesObject,
  makeInformer,
  PatchStrategy,
  setHeaderOptions,
  type V1Deployment,
} from "@kubernetes/client-node";
import type { Website } from "./definition.ts";

const api = { group: "example.com", version: "v1", plural: "websites" };
const finalizer = "example.com/operator";
const merge = setHeaderOptions("Content-Type", PatchStrategy.MergePatch);

/** Keeps a Deployment for each Website. @param released is called for each deleted Website, before it is removed */
export async function startOperator(config: KubeConfig, released: (name: string) => void): Promise<{ stop(): Promise<void> }> {
  const apps = config.makeApiClient(AppsV1Api);
  const objects = config.makeApiClient(CustomObjectsApi);

  const websites = makeInformer<Website & KubernetesObject>(config, "/apis/example.com/v1/websites", () =>
    objects.listClusterCustomObject(api),
  );
  const deployments = makeInformer<V1Deployment>(config, "/apis/apps/v1/deployments", () =>
    apps.listDeploymentForAllNamespaces(),
  );

  async function reconcile({ metadata, spec }: Website): Promise<void> {
    const { name, namespace, uid = "", finalizers = [], deletionTimestamp } = metadata;
    const target = { ...api, namespace, name };
    if (deletionTimestamp) {
      if (!finalizers.includes(finalizer)) return;
      released(name);
      const body = { metadata: { finalizers: finalizers.filter((one) => one !== finalizer) } };
      await objects.patchNamespacedCustomObject({ ...target, body }, merge);
      return;
    }
    if (!finalizers.includes(finalizer)) {
      await objects.patchNamespacedCustomObject(
        { ...target, body: { metadata: { finalizers: [...finalizers, finalizer] } } },
        merge,
      );
    }
    const owner = { apiVersion: "example.com/v1", kind: "Website", name, uid, controller: true };
    const body: V1Deployment = {
      metadata: { name, ownerReferences: [owner] },
      spec: {
        replicas: spec.replicas ?? 1,
        selector: { matchLabels: { website: name } },
        template: { metadata: { labels: { website: name } }, spec: { containers: [{ name: "web", image: spec.image }] } },
      },
    };
    try {
      await apps.createNamespacedDeployment({ namespace, body });
    } catch (err) {
      if ((err as { code?: number }).code !== 409) throw err;
      await apps.patchNamespacedDeployment({ name, namespace, body }, merge);
    }
  }

  async function report({ metadata = {}, status = {} }: V1Deployment): Promise<void> {
    const [owner] = metadata.ownerReferences ?? [];
    if (owner?.kind !== "Website") return;
    const target = { ...api, namespace: metadata.namespace ?? "", name: owner.name };
    const body = { status: { readyReplicas: status.readyReplicas ?? 0 } };
    await objects.patchNamespacedCustomObjectStatus({ ...target, body }, merge);
  }

  // A real operator has a queue with back-off; here the next change tries again.
  const ignore = (): void => {};
  for (const verb of ["add", "update"] as const) {
    websites.on(verb, (website) => void reconcile(website).catch(ignore));
    deployments.on(verb, (deployment) => void report(deployment).catch(ignore));
  }
  await Promise.all([websites.start(), deployments.start()]);
  return {
    async stop() {
      await Promise.all([websites.stop(), deployments.stop()]);
    },
  };
}
