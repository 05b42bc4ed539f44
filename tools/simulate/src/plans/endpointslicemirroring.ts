import { endpoints, services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { allFaults, lasting, namespace, type Plan } from "./plan.ts";

interface Subset {
  readonly addresses: readonly { readonly ip: string }[];
}

/** Endpoints that a user writes for a Service without a selector are mirrored in EndpointSlices; slices of deleted Endpoints are removed. */
export const endpointSliceMirroringPlan: Plan = {
  name: "endpointslicemirroring",
  controllers: ["podgc", "endpointslicemirroring"],
  apis: ["discovery.k8s.io/v1"],
  faults: allFaults,
  rules: lasting,
  async act(user) {
    const subsets = (): Subset[] => [
      { addresses: Array.from({ length: 1 + Math.floor(user.random() * 3) }, (_, at) => ({ ip: `10.7.0.${at + 1}` })) },
    ];
    for (const name of ["database", "former"]) {
      await user.create(services, { metadata: { name, namespace }, spec: { ports: [{ port: 5432 }] } });
      await user.create(endpoints, { metadata: { name, namespace }, subsets: subsets() });
    }
    await user.pause(user.random() * 8_000);
    await user.change(endpoints, "database", (object) => Object.assign(object, { subsets: subsets() }));
    await user.remove(endpoints, "former");
    await user.pause(user.random() * 5_000);
  },
  missing(view) {
    const stored = view.get("services/endpoints", `${namespace}/database`) as { subsets?: Subset[] } | undefined; // cast: an object of that resource
    const wanted = addressesOf((stored?.subsets ?? []).flatMap(({ addresses }) => addresses.map(({ ip }) => ip)));
    for (const [name, addresses] of [
      ["database", wanted],
      ["former", ""],
    ]) {
      const slices = view
        .all("endpointslices")
        .filter(({ metadata }) => metadata.labels?.["kubernetes.io/service-name"] === name);
      const mirrored = addressesOf(
        slices
          .flatMap((slice) => (slice as { endpoints?: { addresses: string[] }[] }).endpoints ?? []) // cast: an EndpointSlice
          .flatMap((e) => e.addresses),
      );
      if (mirrored !== addresses) return `the EndpointSlices of ${name} have ${mirrored}, its Endpoints have ${addresses}`;
    }
    return undefined;
  },
};

const addressesOf = (addresses: readonly string[]): string => addresses.toSorted().join();
