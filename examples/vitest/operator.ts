import {
  CoreV1Api,
  CustomObjectsApi,
  type KubeConfig,
  makeInformer,
  PatchStrategy,
  setHeaderOptions,
  type V1Namespace,
} from "@kubernetes/client-node";
import type { Team } from "./team.ts";

const api = { group: "example.com", version: "v1", plural: "teams" };
const finalizer = "example.com/namespace";
const label = "example.com/team";
const merge = setHeaderOptions("Content-Type", PatchStrategy.MergePatch);
const codeOf = (err: unknown): number | undefined => (err as { code?: number }).code;

/** Keeps a namespace with a quota for each Team. A deleted Team is removed after its namespace. */
export async function startOperator(config: KubeConfig, { retryMs = 1_000 } = {}): Promise<{ stop(): Promise<void> }> {
  const core = config.makeApiClient(CoreV1Api);
  const objects = config.makeApiClient(CustomObjectsApi);
  const teams = makeInformer<Team>(config, "/apis/example.com/v1/teams", () => objects.listClusterCustomObject(api));
  const namespaces = makeInformer<V1Namespace>(
    config,
    "/api/v1/namespaces",
    () => core.listNamespace({ labelSelector: label }),
    label,
  );

  async function reconcile({ metadata: { name = "", deletionTimestamp, finalizers = [] } = {}, spec }: Team): Promise<void> {
    const setFinalizers = (wanted: string[]) =>
      objects.patchClusterCustomObject({ ...api, name, body: { metadata: { finalizers: wanted } } }, merge);
    if (deletionTimestamp) {
      try {
        await core.deleteNamespace({ name: `team-${name}` });
      } catch (err) {
        if (codeOf(err) === 409) return; // it is being emptied; its end is another event
        if (codeOf(err) !== 404) throw err;
        if (finalizers.includes(finalizer)) await setFinalizers(finalizers.filter((one) => one !== finalizer));
      }
      return;
    }
    if (!finalizers.includes(finalizer)) await setFinalizers([...finalizers, finalizer]);
    const namespace = `team-${name}`;
    const quota = { metadata: { name: "team" }, spec: { hard: { pods: String(spec.pods) } } };
    await unlessThere(core.createNamespace({ body: { metadata: { name: namespace, labels: { [label]: name } } } }));
    await unlessThere(core.createNamespacedResourceQuota({ namespace, body: quota }));
    await core.patchNamespacedResourceQuota({ name: "team", namespace, body: quota }, merge);
    await objects.patchClusterCustomObjectStatus({ ...api, name, body: { status: { namespace } } }, merge);
  }

  // One Team after another, each as often as it needs.
  let work = Promise.resolve();
  const timers = new Set<NodeJS.Timeout>();
  function enqueue(name: string | undefined): void {
    work = work.then(async () => {
      const team = teams.list().find(({ metadata }) => metadata?.name === name);
      if (team === undefined) return;
      try {
        await reconcile(team);
      } catch (err) {
        // Another change has come in between: its event is on the way.
        if (codeOf(err) === 404) return;
        const timer = setTimeout(() => {
          timers.delete(timer);
          enqueue(name);
        }, retryMs);
        timers.add(timer);
      }
    });
  }
  for (const verb of ["add", "update"] as const) teams.on(verb, ({ metadata }) => enqueue(metadata?.name));
  for (const verb of ["update", "delete"] as const) {
    namespaces.on(verb, ({ metadata }) => enqueue(metadata?.labels?.[label]));
  }
  await Promise.all([teams.start(), namespaces.start()]);
  return {
    async stop() {
      await Promise.all([teams.stop(), namespaces.stop()]);
      for (const timer of timers) clearTimeout(timer);
      await work;
    },
  };
}

async function unlessThere(created: Promise<unknown>): Promise<void> {
  try {
    await created;
  } catch (err) {
    if (codeOf(err) !== 409) throw err;
  }
}
