import { deployments, pods, services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { isReady, type Stored } from "../invariants/view.ts";
import { allFaults, lasting, namespace, type Plan, podTemplate } from "./plan.ts";

const labels = { app: "web" };

/**
 * A Service's Pods come and go: in the end its Endpoints and EndpointSlices have the addresses of the ready ones. Other Services of the
 * same Pods are deleted soon after their creation: nothing of their Endpoints stays.
 */
export const servicePlan: Plan = {
  name: "service",
  controllers: ["podgc", "deployment", "replicaset", "endpoint", "endpointslice"],
  apis: ["discovery.k8s.io/v1"],
  faults: allFaults,
  rules: lasting,
  async act(user) {
    await user.create(services, { metadata: { name: "web", namespace }, spec: { selector: labels, ports: [{ port: 80 }] } });
    await user.create(deployments, {
      metadata: { name: "web", namespace },
      spec: { replicas: 3, selector: { matchLabels: labels }, template: podTemplate(labels) },
    });
    for (let turn = 0; turn < (user.isSmall ? 1 : 3); turn++) {
      await user.pause(user.random() * 8_000);
      const replicas = Math.floor(user.random() * 4);
      await user.change(deployments, "web", ({ spec }) => {
        spec.replicas = replicas;
      });
      const { items } = await user.client.list<Stored>(pods, { namespace }).catch(() => ({ items: [] }));
      const brief = { name: `brief-${turn}`, namespace };
      await user.create(services, { metadata: brief, spec: { selector: labels, ports: [{ port: 80 }] } });
      await user.pause(user.random() * 1_000);
      await user.remove(services, brief.name);
      const victim = items[Math.floor(user.random() * items.length)]?.metadata.name;
      if (victim !== undefined) await user.remove(pods, victim);
    }
  },
  always(view) {
    const endpoints = view.all("endpointslices").flatMap(endpointsOf);
    const wrong = endpoints.find(({ conditions }) => conditions?.ready && conditions.terminating);
    return wrong && `the endpoint ${wrong.addresses} is ready although its pod ends`;
  },
  missing(view) {
    const left = view.all("services/endpoints").find(({ metadata }) => metadata.name !== "web");
    if (left !== undefined) return `the Endpoints ${left.metadata.name} are left of a Service that was deleted`;
    const there = view.all("pods");
    const { replicas } = view.get("deployments", `${namespace}/web`)?.spec ?? {};
    if (there.length !== replicas || !there.every(isReady)) return `${there.length} pods, ${replicas} are wanted`;
    const wanted = addressesOf(there.map(({ status }) => status.podIP));
    const stored = view.get("services/endpoints", `${namespace}/web`) as { subsets?: Subset[] } | undefined; // cast: an object of that resource
    const inEndpoints = addressesOf((stored?.subsets ?? []).flatMap(({ addresses = [] }) => addresses.map(({ ip }) => ip)));
    if (inEndpoints !== wanted) return `the Endpoints have ${inEndpoints}, the pods have ${wanted}`;
    const slices = view.all("endpointslices").filter(({ metadata }) => metadata.labels?.["kubernetes.io/service-name"] === "web");
    const endpoints = slices.flatMap(endpointsOf);
    const unready = endpoints.find(({ conditions }) => !conditions?.ready);
    if (unready !== undefined) return `the endpoint ${unready.addresses} is not ready although its pod is`;
    const inSlices = addressesOf(endpoints.flatMap(({ addresses }) => addresses));
    return inSlices === wanted ? undefined : `the EndpointSlices have ${inSlices}, the pods have ${wanted}`;
  },
};

interface Subset {
  readonly addresses?: readonly { readonly ip: string }[];
}
interface Endpoint {
  readonly addresses: readonly string[];
  readonly conditions?: { readonly ready?: boolean; readonly terminating?: boolean };
}

const endpointsOf = (slice: Stored): readonly Endpoint[] => (slice as { endpoints?: Endpoint[] }).endpoints ?? []; // cast: an EndpointSlice

const addressesOf = (addresses: readonly string[]): string => addresses.toSorted().join();
