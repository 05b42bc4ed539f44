import type { Deployment } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { Job } from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";
import type { Endpoints, Namespace, Node, Pod, Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import {
  configMaps,
  deployments,
  endpoints,
  jobs,
  namespaces,
  nodes,
  pods,
  services,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { DaemonCluster } from "./cluster.ts";
import { addNodes, addPods, benchPod, nodeName, removeAll, reportNode, untilGone, untilObject } from "./cluster-objects.ts";
import { isReady } from "./pod-view.ts";
import { repeat } from "./repeat.ts";
import type { Scenario, ScenarioLimits } from "./scenario.ts";

interface ControllerSizes {
  readonly replicas: number;
  readonly deployments: number;
  readonly completions: number;
  /** Number of objects in the namespace that is deleted. */
  readonly objects: number;
  readonly dependents: number;
  readonly services: number;
  readonly endpoints: number;
  readonly lostNodes: number;
}

const limits: ScenarioLimits = { seconds: 0.7, cpu: 0.5, apiCalls: 1 };

/** The rows of the controller manager's table, in the order in which they are measured. */
export function controllerScenarios(sizes: ControllerSizes): Scenario[] {
  return [
    ...oneDeployment(sizes.replicas),
    manyDeployments(sizes.deployments),
    job(sizes.completions),
    namespaceDeletion(sizes.objects),
    garbage(sizes.dependents),
    endpointChurn(sizes.services, sizes.endpoints),
    lostNodes(sizes.lostNodes),
  ];
}

const web = "web";

function aDeployment(name: string, replicas: number): Deployment {
  const { spec } = benchPod({ name });
  const labels = { app: name };
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name },
    spec: { replicas, selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
  };
}

/** True when the status is of the current generation and all replicas are ready and of the newest template. */
function isComplete({ metadata, spec, status = {} }: Deployment): boolean {
  const replicas = spec?.replicas ?? 1;
  const { observedGeneration = 0, replicas: all = 0, updatedReplicas = 0, availableReplicas = 0 } = status;
  return (
    observedGeneration >= (metadata.generation ?? 0) &&
    all === replicas &&
    updatedReplicas === replicas &&
    availableReplicas === replicas
  );
}

const complete = (cluster: DaemonCluster, name: string): Promise<void> => untilObject(cluster, deployments, name, isComplete);

async function startDeployment(cluster: DaemonCluster, replicas: number): Promise<void> {
  cluster.pods.fate = "ready";
  await cluster.client.create(deployments, aDeployment(web, replicas), { namespace: cluster.namespace });
  await complete(cluster, web);
}

async function patchDeployment({ client, namespace }: DaemonCluster, body: object): Promise<void> {
  await client.patch(deployments, { namespace, name: web }, { type: "merge", body });
}

async function removeDeployments(cluster: DaemonCluster): Promise<void> {
  await removeAll(cluster, deployments);
  await cluster.pods.until("no pods", 0, () => true);
  cluster.pods.fate = "none";
}

function oneDeployment(replicas: number): Scenario[] {
  return [
    {
      name: `Deployment from 0 to ${replicas} ready`,
      limits,
      async run(cluster) {
        await startDeployment(cluster, replicas);
        return replicas;
      },
      clean: removeDeployments,
    },
    {
      name: `rolling update of ${replicas}`,
      limits,
      prepare: (cluster) => startDeployment(cluster, replicas),
      async run(cluster) {
        await patchDeployment(cluster, { spec: { template: { metadata: { annotations: { "example.com/version": "2" } } } } });
        await complete(cluster, web);
        return replicas;
      },
      clean: removeDeployments,
    },
    {
      name: `Deployment from ${replicas} to 0`,
      limits,
      prepare: (cluster) => startDeployment(cluster, replicas),
      async run(cluster) {
        await patchDeployment(cluster, { spec: { replicas: 0 } });
        await complete(cluster, web);
        await cluster.pods.until("no pods", 0, () => true);
        return replicas;
      },
      clean: removeDeployments,
    },
  ];
}

const replicasOfMany = 10;

function manyDeployments(count: number): Scenario {
  return {
    name: `${count} Deployments of ${replicasOfMany} at once`,
    limits,
    async run(cluster) {
      cluster.pods.fate = "ready";
      const { client, namespace } = cluster;
      await repeat(count, (index) => client.create(deployments, aDeployment(`web-${index}`, replicasOfMany), { namespace }));
      const isDone = async (): Promise<boolean> => {
        const { items } = await client.list<Deployment>(deployments, { namespace });
        return items.every(isComplete);
      };
      await waitFor(isDone, { what: "all Deployments to be complete", timeoutMs: 600_000, intervalMs: 25 });
      return count * replicasOfMany;
    },
    clean: removeDeployments,
  };
}

const parallelism = 100;

function job(completions: number): Scenario {
  return {
    name: `Job of ${completions} completions, ${parallelism} at once`,
    limits,
    async run(cluster) {
      cluster.pods.fate = "succeeded";
      const { client, namespace } = cluster;
      const template = { metadata: {}, spec: { ...benchPod({ name: "work" }).spec, restartPolicy: "Never" as const } };
      const object: Job = {
        apiVersion: "batch/v1",
        kind: "Job",
        metadata: { name: "work" },
        spec: { completions, parallelism, template },
      };
      await client.create(jobs, object, { namespace });
      await untilObject<Job>(cluster, jobs, "work", ({ status }) => status?.succeeded === completions);
      return completions;
    },
    async clean(cluster) {
      await removeAll(cluster, jobs);
      await cluster.pods.until("no pods", 0, () => true);
      cluster.pods.fate = "none";
    },
  };
}

const doomed = "doomed";

function namespaceDeletion(objects: number): Scenario {
  return {
    name: `namespace with ${objects} objects deleted`,
    limits,
    async prepare({ client }) {
      await client.create<Namespace>(namespaces, { apiVersion: "v1", kind: "Namespace", metadata: { name: doomed }, spec: {} });
      await repeat(objects, (index) => client.create(configMaps, aConfigMap(`object-${index}`), { namespace: doomed }));
    },
    async run({ client }) {
      await client.delete(namespaces, { name: doomed });
      const isGone = async (): Promise<boolean> => (await client.raw("GET", `/api/v1/namespaces/${doomed}`)).status === 404;
      await waitFor(isGone, { what: "the namespace to be gone", timeoutMs: 600_000, intervalMs: 25 });
      return objects;
    },
  };
}

const aConfigMap = (name: string, more: object = {}) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, ...more },
  data: { settings: "level=info\nworkers=4\n" },
});

const owner = "owner";

function garbage(dependents: number): Scenario {
  return {
    name: `garbage collection of ${dependents} dependents`,
    limits,
    async prepare({ client, namespace }) {
      const { metadata } = await client.create(configMaps, aConfigMap(owner), { namespace });
      const { uid } = metadata as { uid?: string }; // cast: an object of the API server
      const ownerReferences = [{ apiVersion: "v1", kind: "ConfigMap", name: owner, uid }];
      await repeat(dependents, (index) =>
        client.create(configMaps, aConfigMap(`dependent-${index}`, { ownerReferences, labels: { owner } }), { namespace }),
      );
    },
    async run(cluster) {
      const { client, namespace } = cluster;
      await client.delete(configMaps, { namespace, name: owner }, { propagationPolicy: "Background" });
      await untilGone(cluster, configMaps, `owner=${owner}`);
      return dependents;
    },
  };
}

/** All Pods of all Services become ready at the same time. */
function endpointChurn(serviceCount: number, endpointCount: number): Scenario {
  const podCount = serviceCount * endpointCount;
  let stopReports: (() => Promise<void>) | undefined;
  return {
    name: `${serviceCount} Services of ${endpointCount} endpoints, all of them new`,
    limits,
    async prepare(cluster) {
      const { client, namespace } = cluster;
      cluster.pods.fate = "none";
      // A node that reports: pods of another would be removed by the pod garbage collector, or marked as not ready.
      await addNodes(cluster, 1);
      stopReports = await reportNode(cluster, nodeName(0));
      await repeat(serviceCount, (index) => client.create<Service>(services, aService(index), { namespace }));
      await addPods(cluster, podCount, (index) =>
        benchPod({
          name: `pod-${index}`,
          labels: { service: `service-${index % serviceCount}` },
          spec: { nodeName: nodeName(0) },
        }),
      );
      await cluster.pods.until("pods", podCount, () => true);
    },
    async run(cluster) {
      const { client, namespace } = cluster;
      await cluster.pods.writeAll("ready");
      await cluster.pods.until("ready pods", podCount, isReady);
      const isDone = async (): Promise<boolean> => {
        const { items } = await client.list<Endpoints>(endpoints, { namespace });
        const ready = items.flatMap(({ subsets }) => subsets ?? []).flatMap(({ addresses }) => addresses ?? []);
        return ready.length === podCount;
      };
      await waitFor(isDone, { what: "all endpoints", timeoutMs: 600_000, intervalMs: 250 });
      return podCount;
    },
    async clean(cluster) {
      await removeAll(cluster, services);
      await removeAll(cluster, pods);
      await cluster.pods.until("no pods", 0, () => true);
      await untilGone(cluster, endpoints);
      await stopReports?.();
      await removeAll(cluster, nodes);
    },
  };
}

const aService = (index: number): Service => ({
  apiVersion: "v1",
  kind: "Service",
  metadata: { name: `service-${index}` },
  spec: { selector: { service: `service-${index}` }, ports: [{ port: 80 }] },
});

const podsOfLostNode = 4;

/** Nodes stop reporting; the time includes the controller's grace period. */
function lostNodes(nodeCount: number): Scenario {
  const podCount = nodeCount * podsOfLostNode;
  return {
    name: `${nodeCount} nodes of ${podsOfLostNode} pods lost at once`,
    limits: { cpu: 0.5, apiCalls: 1 },
    async prepare(cluster) {
      await addPods(cluster, podCount, (index) =>
        benchPod({ name: `pod-${index}`, spec: { nodeName: nodeName(index % nodeCount) } }),
      );
      await cluster.pods.until("pods", podCount, () => true);
      await cluster.pods.writeAll("ready");
      await cluster.pods.until("ready pods", podCount, isReady);
      // The last step, because they never report: the grace period begins.
      await addNodes(cluster, nodeCount);
    },
    async run(cluster) {
      const { client } = cluster;
      await cluster.pods.until("pods that are not ready", podCount, (pod: Pod) => !isReady(pod));
      const isUnknown = ({ status }: Node): boolean =>
        status?.conditions?.some((condition) => condition.type === "Ready" && condition.status === "Unknown") === true;
      const areUnknown = async (): Promise<boolean> => (await client.list<Node>(nodes)).items.every(isUnknown);
      await waitFor(areUnknown, { what: "all nodes to be unknown", timeoutMs: 120_000 });
      return nodeCount;
    },
    async clean(cluster) {
      await removeAll(cluster, nodes);
      await removeAll(cluster, pods);
      await cluster.pods.until("no pods", 0, () => true);
    },
  };
}
