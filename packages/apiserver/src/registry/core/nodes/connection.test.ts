/** Addresses of kubelets, and of nodes for the proxy. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { notFound, StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { CatalogueConfig } from "../../config.ts";
import type { SubresourceCall } from "../../generic/resource.ts";
import { kubeletOf, preferredAddress, refuseSpecialAddress } from "./connection.ts";
import { nodeProxy } from "./proxy.ts";

const aNode = (addresses: [type: string, address: string][], labels: Record<string, string> = {}): Node => ({
  metadata: { name: "n", labels },
  spec: {},
  status: { addresses: addresses.map(([type, address]) => ({ type, address })) },
});

const hostname = { "kubernetes.io/hostname": "by-label" };
for (const { name, types, node, want } of [
  {
    name: "of the first preferred type that it has, whatever the order of its addresses",
    types: ["Hostname", "InternalIP", "ExternalIP"],
    node: aNode([
      ["ExternalIP", "192.0.2.1"],
      ["InternalIP", "10.0.0.1"],
      ["InternalIP", "10.0.0.2"],
    ]),
    want: "10.0.0.1",
  },
  {
    name: "of another type when the preferred one is empty",
    types: ["InternalIP", "ExternalIP"],
    node: aNode([
      ["InternalIP", ""],
      ["ExternalIP", "192.0.2.1"],
    ]),
    want: "192.0.2.1",
  },
  {
    name: "of its label without a hostname",
    types: ["Hostname", "InternalIP"],
    node: aNode([["InternalIP", "10.0.0.1"]], hostname),
    want: "by-label",
  },
  { name: "of its hostname before the label", types: ["Hostname"], node: aNode([["Hostname", "own"]], hostname), want: "own" },
]) {
  test(`a node is reached at the address ${name}`, () => assert.equal(preferredAddress(node, types), want));
}

test("a node without an address of a preferred type is an error that names the types it has", () => {
  const node = aNode(
    [
      ["InternalDNS", "n.local"],
      ["ExternalIP", "192.0.2.1"],
    ],
    hostname,
  );
  assert.throws(() => preferredAddress(node, ["InternalIP"]), {
    message: "no preferred addresses found; known addresses: [InternalDNS ExternalIP]",
  });
});

const config = { kubeletConnection: { preferredAddressTypes: ["InternalIP"], port: 10_250 } } as unknown as CatalogueConfig;

/** A request about `name` in a cluster with the node `n`. */
function call(name: string, address: string, port?: number): SubresourceCall {
  const node = aNode([["InternalIP", address]]);
  if (port !== undefined) node.status!.daemonEndpoints = { kubeletEndpoint: { Port: port } };
  const nodes = {
    async get(_namespace: string, wanted: string) {
      if (wanted !== "n") throw notFound({ group: "", resource: "nodes" }, wanted);
      return { object: () => node };
    },
  };
  const ctx = { query: new URLSearchParams("a=1"), info: { group: "", resource: "pods" } };
  return { name, ctx, services: { store: () => nodes } } as unknown as SubresourceCall;
}

for (const { name, address, port, want } of [
  { name: "at the port that it reports", address: "10.0.0.1", port: 10_255, want: "https://10.0.0.1:10255/" },
  { name: "at the port of the flag when it reports none", address: "10.0.0.1", port: undefined, want: "https://10.0.0.1:10250/" },
  { name: "at that port when it reports 0", address: "10.0.0.1", port: 0, want: "https://10.0.0.1:10250/" },
  { name: "at an IPv6 address", address: "fd00::1", port: undefined, want: "https://[fd00::1]:10250/" },
]) {
  test(`a kubelet is reached ${name}`, async () => {
    assert.equal((await kubeletOf(call("p", address, port), "n", config)).href, want);
  });
}

test("a node that is missing is an error about the requested resource", async () => {
  await assert.rejects(kubeletOf(call("p", "10.0.0.1"), "other", config), (err) => {
    return err instanceof StatusError && err.code === 404 && err.message === 'pods "other" not found';
  });
});

test("a node that cannot be read is reported as that", async () => {
  const get = () => Promise.reject(new Error("etcd is away"));
  const call = { name: "p", services: { store: () => ({ get }) } } as unknown as SubresourceCall;
  await assert.rejects(kubeletOf(call, "n", config), { message: "etcd is away" });
});

for (const { name, want } of [
  { name: "n", want: { url: "https://10.0.0.1:10250/logs/x?a=1", toNode: true } },
  { name: "n:10250", want: { url: "https://10.0.0.1:10250/logs/x?a=1", toNode: true } },
  { name: "https:n:", want: { url: "https://10.0.0.1:10250/logs/x?a=1", toNode: true } },
  { name: "n:9100", want: { url: "http://10.0.0.1:9100/logs/x?a=1", toNode: false } },
  { name: "https:n:9100", want: { url: "https://10.0.0.1:9100/logs/x?a=1", toNode: false } },
]) {
  test(`the proxy of node ${name} goes ${want.toNode ? "to the kubelet" : "to another port without the kubelet's certificate"}`, async () => {
    const { url, toNode } = await nodeProxy(config)(call(name, "10.0.0.1"), "logs/x");
    assert.deepEqual({ url: url.href, toNode }, want);
  });
}

test("a port of a node whose address is this machine's own is not proxied to", async () => {
  for (const address of ["127.0.0.1", "169.254.169.254", "::1"]) {
    await assert.rejects(nodeProxy(config)(call("n:9100", address), "/"), { message: "address not allowed" });
    assert.throws(() => refuseSpecialAddress(address), { message: "address not allowed" });
  }
  for (const address of ["10.0.0.1", "fd00::1", "node.example.com"]) refuseSpecialAddress(address);
});
