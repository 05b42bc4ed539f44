import assert from "node:assert/strict";
import { test } from "node:test";
import { notFound, StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import type { SubresourceCall } from "../../generic/resource.ts";
import { serviceProxy } from "./proxy.ts";

const address = (ip: string, pod: string, namespace = "web") => ({ ip, targetRef: { kind: "Pod", namespace, name: pod } });
const subset = (port: object, ...addresses: object[]) => ({ ports: [port], addresses });

/** Where a request for service `s` of the namespace `web` goes; pods `a`, `b` and `c` have the addresses 10.1.0.1, .2 and .3. */
async function target(name: string, subsets: object[] | undefined, ports: object[] = []): Promise<string> {
  const objects: Record<string, object | undefined> = {
    "endpoints web/s": subsets && { subsets },
    "services web/s": { spec: { ports } },
    "pods web/away": new Error("etcd is away"),
  };
  for (const [i, pod] of ["a", "b", "c"].entries()) {
    objects[`pods web/${pod}`] = { status: { podIPs: [{ ip: "fd00::9" }, { ip: `10.1.0.${i + 1}` }] } };
  }
  objects["pods web/own"] = { status: { podIPs: [{ ip: "127.0.0.1" }] } };
  const store = (_group: string, resource: string) => ({
    async get(namespace: string, of: string) {
      const found = objects[`${resource} ${namespace}/${of}`];
      if (found === undefined) throw notFound({ group: "", resource }, of);
      if (found instanceof Error) throw found;
      return { object: () => found };
    },
  });
  const ctx = { query: new URLSearchParams("x=1") };
  const call = { ctx, services: { store }, namespace: "web", name } as unknown as SubresourceCall;
  return serviceProxy(call, "/path").then(
    ({ url }) => url.href,
    (err: unknown) => (err instanceof StatusError ? `${err.code} ${err.message}` : String(err)),
  );
}

const none = '503 no endpoints available for service "s"';
const http = { name: "http", port: 8080 };
for (const { what, name = "s:http", subsets, ports, want } of [
  { what: "a port by name", subsets: [subset(http, address("10.1.0.1", "a"))], want: "http://10.1.0.1:8080/path?x=1" },
  {
    what: "a port of the second subset",
    subsets: [subset({ name: "other", port: 1 }, address("10.1.0.1", "a")), subset(http, address("10.1.0.2", "b"))],
    want: "http://10.1.0.2:8080/path?x=1",
  },
  {
    what: "a port of two subsets, of which one has no pod",
    subsets: [subset(http, address("10.1.0.7", "gone")), subset(http, address("10.1.0.3", "c"))],
    want: "http://10.1.0.3:8080/path?x=1",
  },
  {
    what: "a port by number, of the service",
    name: "https:s:443",
    subsets: [subset({ port: 8443 }, address("10.1.0.1", "a"))],
    ports: [{ port: 80, name: "plain" }, { port: 443 }],
    want: "https://10.1.0.1:8443/path?x=1",
  },
  {
    what: "a port by a number of five digits",
    name: "s:65535",
    subsets: [subset(http, address("10.1.0.1", "a"))],
    ports: [{ port: 65_535, name: "http" }],
    want: "http://10.1.0.1:8080/path?x=1",
  },
  {
    what: "a port whose name is a number of six digits",
    name: "s:123456",
    subsets: [subset({ name: "123456", port: 81 }, address("10.1.0.1", "a"))],
    want: "http://10.1.0.1:81/path?x=1",
  },
  {
    what: "an unnamed port",
    name: "s",
    subsets: [subset({ port: 80 }, address("10.1.0.1", "a"))],
    want: "http://10.1.0.1/path?x=1",
  },
  { what: "an address of a pod elsewhere", subsets: [subset(http, address("10.1.0.1", "a", "other"))], want: none },
  { what: "an address that is not its pod's", subsets: [subset(http, address("10.1.0.2", "a"))], want: none },
  { what: "this machine's own address", subsets: [subset(http, address("127.0.0.1", "own"))], want: "400 address not allowed" },
  { what: "an address without a pod", subsets: [subset(http, { ip: "10.1.0.1" })], want: none },
  { what: "a pod that is gone", subsets: [subset(http, address("10.1.0.1", "gone"))], want: none },
  { what: "a pod that cannot be read", subsets: [subset(http, address("10.1.0.1", "away"))], want: "Error: etcd is away" },
  { what: "no subsets", subsets: [], want: none },
  { what: "no endpoints", subsets: undefined, want: '404 services "s" not found' },
  { what: "a number that the service has not", name: "s:81", subsets: [], want: '503 no service port 81 found for service "s"' },
] as { what: string; name?: string; subsets: object[] | undefined; ports?: object[]; want: string }[]) {
  test(`the target of a service with ${what}`, async () => {
    // The subset and the address to begin with are random.
    for (let i = 0; i < 10; i++) assert.equal((await target(name, subsets, ports)).replaceAll("s:http", "s"), want);
  });
}

test("endpoints that cannot be read are reported as that, not as a service that is missing", async () => {
  const get = () => Promise.reject(new Error("etcd is away"));
  const call = { services: { store: () => ({ get }) }, namespace: "web", name: "s:http" } as unknown as SubresourceCall;
  await assert.rejects(serviceProxy(call, "/"), { message: "etcd is away" });
});
