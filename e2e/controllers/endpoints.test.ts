import assert from "node:assert/strict";
import { test } from "node:test";
import { getJson, kubectl } from "../framework/kubectl.ts";
import { newNamespace } from "../framework/namespace.ts";
import { waitFor } from "../framework/wait-for.ts";

interface Slice {
  addressType: string;
  endpoints: { addresses: string[]; conditions: { ready: boolean } }[];
  ports: { name: string; port: number }[];
}

test("Endpoints of one's own are mirrored to slices, followed, and go with them", async (t) => {
  const namespace = await newNamespace(t, "mirror");
  const apply = (object: object) => kubectl("-n", namespace, "apply", "-f", "-", { input: JSON.stringify(object) });
  const slices = async (): Promise<Slice[]> =>
    (await getJson<{ items: Slice[] }>("endpointslices", "-n", namespace, "-l", "kubernetes.io/service-name=outside")).items;
  const listed = (what: string, addresses: readonly string[]) =>
    waitFor(what, async () => {
      const found = await slices();
      const now = found.flatMap((slice) => slice.endpoints.flatMap((endpoint) => endpoint.addresses));
      return JSON.stringify(now.toSorted()) === JSON.stringify(addresses) && found;
    });
  const metadata = { name: "outside" };
  await apply({ apiVersion: "v1", kind: "Service", metadata, spec: { ports: [{ name: "web", port: 80 }] } });
  const ports = [{ name: "web", port: 8080 }];
  const subset = { addresses: [{ ip: "192.0.2.1" }], notReadyAddresses: [{ ip: "192.0.2.2" }], ports };
  await apply({ apiVersion: "v1", kind: "Endpoints", metadata, subsets: [subset] });
  const [slice, ...others] = await listed("both addresses", ["192.0.2.1", "192.0.2.2"]);
  assert.deepEqual(others, []);
  assert.partialDeepStrictEqual(slice, {
    addressType: "IPv4",
    ports: [{ name: "web", port: 8080 }],
    endpoints: [
      { addresses: ["192.0.2.1"], conditions: { ready: true } },
      { addresses: ["192.0.2.2"], conditions: { ready: false } },
    ],
  });
  await apply({ apiVersion: "v1", kind: "Endpoints", metadata, subsets: [{ addresses: [{ ip: "192.0.2.3" }], ports }] });
  await listed("the new address", ["192.0.2.3"]);
  await kubectl("-n", namespace, "delete", "endpoints", "outside");
  await listed("nothing", []);
});
