/** Where connections to the containers of a pod go. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { CatalogueConfig } from "../../config.ts";
import type { SubresourceCall } from "../../generic/resource.ts";
import { connectAttach, connectExec, connectPortForward } from "./exec.ts";
import { connectLog } from "./log.ts";
import { connectPodProxy } from "./proxy.ts";

const config = { kubeletConnection: { preferredAddressTypes: ["InternalIP"], port: 10_250 } } as unknown as CatalogueConfig;
const node = { metadata: { name: "n" }, status: { addresses: [{ type: "InternalIP", address: "10.0.0.1" }] } };
const containers = [{ name: "a" }, { name: "b", ports: [{ containerPort: 8080 }, { containerPort: 9090 }] }];
const aPod = { metadata: { name: "p", namespace: "web" }, spec: { nodeName: "n", containers: [{ name: "a" }] }, status: {} };

function call(query: string, pod: object = aPod, name = "p"): SubresourceCall {
  const object = { nodes: node, pods: pod };
  const store = (_group: string, resource: "nodes" | "pods") => ({ get: async () => ({ object: () => object[resource] }) });
  const ctx = { query: new URLSearchParams(query), info: { group: "", resource: "pods" } };
  return { name, namespace: "web", ctx, services: { store } } as unknown as SubresourceCall;
}

const kubelet = "https://10.0.0.1:10250";
for (const { name, query, pod, want } of [
  {
    name: "output and errors unless stated, and no input",
    query: "command=sh&command=-c&command=a+b",
    want: "/exec/web/p/a?output=1&error=1&command=sh&command=-c&command=a+b",
  },
  {
    name: "what is stated",
    query: "stdin=true&stdout=false&stderr=0&tty=1&command=sh",
    want: "/exec/web/p/a?input=1&tty=1&command=sh",
  },
  {
    name: "errors also at a terminal, unless it is stated",
    query: "stdin=t&tty=TRUE&stdout=False&command=sh",
    want: "/exec/web/p/a?input=1&error=1&tty=1&command=sh",
  },
  {
    name: "the container that is named, among all lists",
    query: "container=debug&command=sh&stderr=false",
    pod: { ...aPod, spec: { ...aPod.spec, containers, ephemeralContainers: [{ name: "debug" }] } },
    want: "/exec/web/p/debug?output=1&command=sh",
  },
]) {
  test(`exec has ${name}`, async () => {
    const { url, toNode, as } = await connectExec(config)(call(query, pod), "");
    assert.deepEqual([url.href, toNode, as], [kubelet + want, true, "tunnel"]);
  });
}

for (const [value, stated] of [
  ...["1", "true", "True", "t", "f", "no", ""].map((text) => [text, true] as const),
  ...["0", "false", "False", "FALSE"].map((text) => [text, false] as const),
]) {
  test(`exec has an input if it is stated as "${value}": ${stated}`, async () => {
    const { url } = await connectExec(config)(call(`stdin=${value}&command=sh`), "");
    assert.equal(url.searchParams.get("input"), stated ? "1" : null);
  });
}

test("attach has no command", async () => {
  const { url } = await connectAttach(config)(call("stdin=1&command=sh"), "");
  assert.equal(url.href, `${kubelet}/attach/web/p/a?input=1&output=1&error=1`);
});

test("ports are forwarded whether they are listed or repeated, and a malformed one is refused", async () => {
  const forward = async (query: string) => (await connectPortForward(config)(call(query), "")).url.href;
  assert.equal(await forward("ports=80,443&ports=8080"), `${kubelet}/portForward/web/p?port=80&port=443&port=8080`);
  assert.equal(await forward("ports=65535"), `${kubelet}/portForward/web/p?port=65535`);
  assert.equal(await forward(""), `${kubelet}/portForward/web/p`);
  await assert.rejects(forward("ports=80,x"), /strconv.ParseUint: parsing "x": invalid syntax/);
  await assert.rejects(forward("ports=80,65536"), /parsing "65536": value out of range/);
});

test("a pod without a node has no connections, and an empty log", async () => {
  const pod = { ...aPod, spec: { containers: [{ name: "a" }] } };
  for (const connect of [connectExec, connectAttach, connectPortForward])
    await assert.rejects(connect(config)(call("", pod), ""), { message: "pod p does not have a host assigned" });
  assert.equal(await connectLog(config)(call("", pod)), undefined);
});

test("a log has the options of the request under the kubelet's names", async () => {
  const log = async (query: string) => {
    const target = await connectLog(config)(call(query));
    return [target?.url.href.slice(kubelet.length), target?.skipVerify];
  };
  assert.deepEqual(await log(""), ["/containerLogs/web/p/a", false]);
  assert.deepEqual(
    await log(
      "follow=true&previous=1&timestamps=true&tailLines=0&limitBytes=9&sinceTime=2022-01-01T00:00:00Z&insecureSkipTLSVerifyBackend=true",
    ),
    [
      "/containerLogs/web/p/a?follow=true&previous=true&timestamps=true&sinceTime=2022-01-01T00%3A00%3A00Z&tailLines=0&limitBytes=9",
      true,
    ],
  );
  assert.deepEqual(await log("follow=false&previous=0&sinceSeconds=5&container=a"), [
    "/containerLogs/web/p/a?sinceSeconds=5",
    false,
  ]);
});

for (const { name, pod, want } of [
  { name: "p", pod: { podIPs: [{ ip: "10.1.0.1" }, { ip: "fd00::1" }] }, want: "http://10.1.0.1:8080/x" },
  { name: "p:99", pod: { podIP: "10.1.0.1" }, want: "http://10.1.0.1:99/x" },
  { name: "https:p:", pod: { podIP: "fd00::1" }, want: "https://[fd00::1]:8080/x" },
]) {
  test(`the proxy of pod ${name} goes to its first address, without a port to the first of its containers`, async () => {
    const { url, toNode } = await connectPodProxy(call("", { ...aPod, spec: { containers }, status: pod }, name), "/x");
    assert.deepEqual([url.href, toNode], [want, false]);
  });
}

test("a pod without ports is proxied to at the port of the scheme, one without an address not at all", async () => {
  const proxied = (name: string, status: object) => connectPodProxy(call("", { ...aPod, status }, name), "/x");
  assert.equal((await proxied("p", { podIP: "10.1.0.1" })).url.href, "http://10.1.0.1/x");
  assert.equal((await proxied("https:p:", { podIP: "10.1.0.1" })).url.href, "https://10.1.0.1/x");
  for (const status of [{}, { podIP: "127.0.0.1" }]) {
    await assert.rejects(proxied("p", status), { message: "address not allowed" });
  }
});
