import assert from "node:assert/strict";
import { createServer, type IncomingMessage } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import type { TLSSocket } from "node:tls";
import { newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import { asyncRequestListener } from "@coxswain/apimachinery/testing/async-listener";
import { bindPod } from "../binding-cycle.ts";
import { newPodInfo } from "../cache/node-info.ts";
import type { ExtenderConfig } from "../config/file.ts";
import { FitError } from "../framework/status.ts";
import { aTestNode, aTestPod, newTestCluster, type TestClusterOptions } from "../testing/test-cluster.ts";
import { newHttpExtender } from "./http-extender.ts";

interface Call {
  readonly path: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into what was sent.
  readonly body: any;
}
type Answers = Readonly<Record<string, (body: Call["body"]) => unknown>>;

async function bodyOf(request: IncomingMessage): Promise<Call["body"]> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return JSON.parse(Buffer.concat(parts).toString());
}

/** An HTTP extender on loopback with fixed responses by path; 500 for other paths. */
async function startExtender(t: { after(fn: () => void): void }, answers: Answers): Promise<{ url: string; calls: Call[] }> {
  const calls: Call[] = [];
  const server = createServer(
    asyncRequestListener(async (request, response) => {
      const path = (request.url ?? "").slice(1);
      const body = await bodyOf(request);
      calls.push({ path, body });
      const answer = answers[path];
      if (answer === undefined) response.writeHead(500);
      response.end(JSON.stringify(answer?.(body) ?? {}));
    }),
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, calls };
}

/** The default timeout of 5 s may pass on a busy machine before a response is read. */
const patientExtender = (config: ExtenderConfig) => newHttpExtender({ httpTimeout: 10 * 60_000, ...config });
const nodes = [aTestNode("a"), aTestNode("b"), aTestNode("c")];
const pod = aTestPod("web");
const clusterWith = (config: ExtenderConfig, more: TestClusterOptions = {}) =>
  newTestCluster({ nodes, extenders: [patientExtender(config)], ...more });

test("an extender filters nodes by name, with reasons", async (t) => {
  const { url, calls } = await startExtender(t, {
    filter: () => ({ NodeNames: ["c"], FailedNodes: { a: "too far" }, FailedAndUnresolvableNodes: { b: "never" } }),
  });
  const config = { urlPrefix: url, filterVerb: "filter", nodeCacheCapable: true };
  assert.equal(await clusterWith(config).place(pod), "c");
  assert.deepEqual(calls[0]?.body.NodeNames.toSorted(), ["a", "b", "c"]);
  assert.equal(calls[0]?.body.Nodes, null);
  assert.equal(calls[0]?.body.Pod.metadata.name, "web");
});

test("an extender without a node cache receives and returns whole nodes", async (t) => {
  const { url } = await startExtender(t, {
    filter: ({ Nodes }) => ({
      nodes: { items: Nodes.items.filter((node: { metadata: { name: string } }) => node.metadata.name === "b") },
    }),
  });
  assert.equal(await clusterWith({ urlPrefix: url, filterVerb: "filter" }).place(pod), "b");
});

test("an answer of the longest length is read, and a longer one is a failure", async (t) => {
  const answer = { NodeNames: ["c"] };
  const { url } = await startExtender(t, { filter: () => answer });
  const infos = newTestCluster({ nodes }).snapshot().nodes;
  const filter = (mostBytes: number) =>
    newHttpExtender({ urlPrefix: url, filterVerb: "filter", nodeCacheCapable: true, httpTimeout: 600_000 }, mostBytes).filter(
      pod,
      infos,
    );
  const { length } = JSON.stringify(answer);
  assert.deepEqual(
    (await filter(length)).feasible.map(({ name }) => name),
    ["c"],
  );
  await assert.rejects(filter(length - 1), /filter": the response of .*filter is too long$/);
});

test("an extender whose response does not end is cut off once that is too long", { timeout: 60_000 }, async (t) => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const ended = new Promise<void>((resolve) => {
    server.on("request", (_, response) => {
      response.on("close", resolve);
      response.write(" ".repeat(2_000));
    });
  });
  const urlPrefix = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const extender = newHttpExtender({ urlPrefix, filterVerb: "filter", httpTimeout: 600_000 }, 1_000);
  await assert.rejects(extender.filter(pod, newTestCluster({ nodes }).snapshot().nodes), /is too long$/);
  await ended;
});

test("the reasons of an extender that leaves no node are reported", async (t) => {
  const { url } = await startExtender(t, {
    filter: () => ({ NodeNames: [], FailedNodes: { a: "too far", b: "too far", c: "too near" } }),
  });
  const config = { urlPrefix: url, filterVerb: "filter", nodeCacheCapable: true };
  assert.equal(await clusterWith(config).place(pod), "0/3 nodes are available: 1 too near, 2 too far.");
});

test("an extender's scores count ten times its weight", async (t) => {
  const { url } = await startExtender(t, {
    prioritize: () => [
      { Host: "b", Score: 9 },
      { Host: "a", Score: 1 },
    ],
  });
  assert.equal(await clusterWith({ urlPrefix: url, prioritizeVerb: "prioritize", weight: 5 }).place(pod), "b");
});

test("the scores of an extender are multiplied by its weight", async (t) => {
  const { url } = await startExtender(t, { prioritize: () => [{ Host: "b", Score: 9 }] });
  const extender = patientExtender({ urlPrefix: url, prioritizeVerb: "prioritize", weight: 5 });
  assert.deepEqual([...(await extender.prioritize(pod, newTestCluster({ nodes }).snapshot().nodes))], [["b", 45]]);
});

test("scoring continues without the scores of a failed extender", async (t) => {
  const { url } = await startExtender(t, {});
  assert.equal(await clusterWith({ urlPrefix: url, prioritizeVerb: "prioritize", weight: 5 }).place(pod), "a");
});

for (const Score of ["9", 1.5, null, 2 ** 60])
  test(`an extender whose score is ${JSON.stringify(Score)} ${Score === null ? "gives none" : "has no say"}`, async (t) => {
    const { url } = await startExtender(t, {
      prioritize: () => [
        { Host: "b", Score: 10 },
        { Host: "c", Score },
      ],
    });
    const cluster = clusterWith({ urlPrefix: url, prioritizeVerb: "prioritize", weight: 5 });
    assert.equal(await cluster.place(pod), Score === null ? "b" : "a");
  });

test("a failed extender filter fails the pod, unless the extender is ignorable", async (t) => {
  const { url } = await startExtender(t, {});
  const config = { urlPrefix: url, filterVerb: "filter" };
  await assert.rejects(clusterWith(config).place(pod), { message: `failed filter with extender at URL ${url}filter, code 500` });
  assert.equal(await clusterWith({ ...config, ignorable: true }).place(pod), "a");
});

test("when the filter fails for the nominated node, the other nodes are tried", async (t) => {
  const { url, calls } = await startExtender(t, {
    filter: ({ NodeNames }) => (NodeNames.length === 1 ? { Error: "no mood" } : { NodeNames: ["c"] }),
  });
  const nominated = aTestPod("web", { status: { nominatedNodeName: "b" } });
  assert.equal(await clusterWith({ urlPrefix: url, filterVerb: "filter", nodeCacheCapable: true }).place(nominated), "c");
  assert.deepEqual([calls[0]?.body.NodeNames, calls[1]?.body.NodeNames.length], [["b"], 3]);
});

test("the second extender gets the nodes that the first left, and its reasons are added to the first's", async (t) => {
  const first = await startExtender(t, { filter: () => ({ NodeNames: ["b", "c"], FailedNodes: { a: "too far" } }) });
  const second = await startExtender(t, { filter: () => ({ NodeNames: [], FailedNodes: { a: "too old", b: "no", c: "no" } }) });
  const extenders = [first, second].map(({ url }) =>
    patientExtender({ urlPrefix: url, filterVerb: "filter", nodeCacheCapable: true }),
  );
  const placed = await newTestCluster({ nodes, extenders }).place(pod);
  assert.deepEqual(second.calls[0]?.body.NodeNames.toSorted(), ["b", "c"]);
  assert.equal(placed, "0/3 nodes are available: 1 too far, 1 too old, 2 no.");
});

test("an extender is not called when the one before it leaves no node", async (t) => {
  const first = await startExtender(t, { filter: () => ({ NodeNames: [] }) });
  const second = await startExtender(t, { filter: () => ({ NodeNames: [] }) });
  const extenders = [first, second].map(({ url }) =>
    patientExtender({ urlPrefix: url, filterVerb: "filter", nodeCacheCapable: true }),
  );
  await newTestCluster({ nodes, extenders }).place(pod);
  assert.deepEqual([first.calls.length, second.calls.length], [1, 0]);
});

test("an extender's answer with another status than 200 is a failure", async (t) => {
  const server = createServer((_, response) => {
    response.writeHead(201);
    response.end(JSON.stringify({ NodeNames: ["a"] }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const failing = clusterWith({ urlPrefix: url, filterVerb: "filter", nodeCacheCapable: true }).place(pod);
  await assert.rejects(failing, { message: `failed filter with extender at URL ${url}/filter, code 201` });
});

test("a node that an extender names as failed and as unresolvable is counted once", async (t) => {
  const { url } = await startExtender(t, {
    filter: () => ({
      NodeNames: [],
      FailedNodes: { a: "full", b: "full" },
      FailedAndUnresolvableNodes: { a: "gone", c: "gone" },
    }),
  });
  const placed = await clusterWith({ urlPrefix: url, filterVerb: "filter", nodeCacheCapable: true }).place(pod);
  assert.equal(placed, "0/3 nodes are available: 1 full, 2 gone.");
});

test("a node that is unresolvable for one extender stays so when another one names it, too", async (t) => {
  const first = await startExtender(t, { filter: () => ({ NodeNames: ["c"], FailedAndUnresolvableNodes: { a: "gone" } }) });
  const second = await startExtender(t, { filter: () => ({ NodeNames: [], FailedNodes: { a: "full", c: "full" } }) });
  const extenders = [first, second].map(({ url }) =>
    patientExtender({ urlPrefix: url, filterVerb: "filter", nodeCacheCapable: true }),
  );
  const refusal = await newTestCluster({ nodes, extenders })
    .decide(pod)
    .catch((err: unknown) => err);
  assert.ok(refusal instanceof FitError);
  assert.deepEqual(
    ["a", "c"].map((name) => refusal.statuses.get(name)?.code),
    ["UnschedulableAndUnresolvable", "Unschedulable"],
  );
});

test("a filter response with an error, and one with unknown nodes, fail the pod", async (t) => {
  const failing = await startExtender(t, { filter: () => ({ Error: "no mood" }) });
  await assert.rejects(clusterWith({ urlPrefix: failing.url, filterVerb: "filter" }).place(pod), { message: "no mood" });
  const strange = await startExtender(t, { filter: () => ({ NodeNames: ["z"] }) });
  const config = { urlPrefix: strange.url, filterVerb: "filter", nodeCacheCapable: true };
  await assert.rejects(clusterWith(config).place(pod), {
    message: `extender ${JSON.stringify(strange.url)} claims a filtered node "z" which is not found in the input node list`,
  });
});

test("an extender is called only for pods that request its managed resources", async (t) => {
  const { url, calls } = await startExtender(t, { filter: () => ({ NodeNames: ["c"] }) });
  const managedResources = [{ name: "example.com/gpu" }];
  const config = { urlPrefix: url, filterVerb: "filter", nodeCacheCapable: true, managedResources };
  assert.equal(await clusterWith(config).place(pod), "a");
  assert.equal(calls.length, 0);
  const gpu = aTestPod("gpu", {
    spec: { containers: [{ name: "main", image: "x", resources: { limits: { "example.com/gpu": "1" } } }] },
  });
  assert.equal(await clusterWith(config).place(gpu), "c");
  const asking = { name: "init", image: "x", resources: { limits: { "example.com/gpu": "1" } } };
  const plain = { name: "main", image: "x" };
  for (const [name, spec] of Object.entries({
    init: { containers: [plain], initContainers: [{ ...plain, name: "first" }, asking] },
    second: { containers: [plain, asking] },
  }))
    assert.equal(await clusterWith(config).place(aTestPod(name, { spec })), "c", name);
  const requesting = { ...plain, resources: { requests: { "example.com/gpu": "1" } } };
  assert.equal(patientExtender(config).isInterested(aTestPod("requests", { spec: { containers: [requesting] } })), true);
});

test("an extender's prefix may end in slashes, and a timeout of 0 is the default", async (t) => {
  const { url, calls } = await startExtender(t, { filter: () => ({ NodeNames: ["c"] }) });
  const config = { urlPrefix: `${url}//`, filterVerb: "filter", nodeCacheCapable: true, httpTimeout: 0 };
  const { nodes: infos } = newTestCluster({ nodes }).snapshot();
  const { feasible } = await newHttpExtender(config).filter(pod, infos);
  assert.deepEqual(
    feasible.map(({ name }) => name),
    ["c"],
  );
  assert.equal(calls.length, 1);
});

test("an extender has its own timeout, or 5 s", async (t) => {
  const { url } = await startExtender(t, { filter: () => ({ NodeNames: ["c"] }) });
  const asked: number[] = [];
  t.mock.method(AbortSignal, "timeout", (ms: number) => {
    asked.push(ms);
    return new AbortController().signal;
  });
  for (const httpTimeout of [7_000, 0]) {
    const config = { urlPrefix: url, filterVerb: "filter", nodeCacheCapable: true, httpTimeout };
    await newHttpExtender(config).filter(pod, newTestCluster({ nodes }).snapshot().nodes);
  }
  assert.deepEqual(asked, [7_000, 5_000]);
});

test("an extender call without an answer ends at its timeout", async (t) => {
  const server = createServer(() => {});
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => void server.closeAllConnections());
  t.after(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await assert.rejects(clusterWith({ urlPrefix: url, filterVerb: "filter", httpTimeout: 50 }).place(pod), {
    message: `Post "${url}/filter": context deadline exceeded`,
  });
});

test("an extender with bindVerb binds instead of the scheduler", async (t) => {
  const answers = [{}, { Error: "taken" }];
  const { url, calls } = await startExtender(t, { bind: () => answers.shift() });
  const cluster = clusterWith({ urlPrefix: url, bindVerb: "bind" });
  const { extenders } = { extenders: [patientExtender({ urlPrefix: url, bindVerb: "bind" })] };
  await bindPod(cluster.profile, new Map(), newPodInfo(pod), "a", extenders);
  assert.deepEqual(calls[0]?.body, { PodName: "web", PodNamespace: "default", PodUID: "web", Node: "a" });
  assert.deepEqual(cluster.client.writes, []);
  await assert.rejects(bindPod(cluster.profile, new Map(), newPodInfo(pod), "a", extenders), {
    message: "binding rejected: taken",
  });
});

test("victims are sent as whole pods or by uid, and returned by uid", async (t) => {
  const { url, calls } = await startExtender(t, {
    preempt: () => ({ NodeNameToMetaVictims: { a: { Pods: [{ UID: "old" }], NumPDBViolations: 2 } } }),
  });
  const old = aTestPod("old", { on: "a" });
  const cluster = newTestCluster({ nodes, pods: [old] });
  const candidates = new Map([["a", { pods: [old], violations: 1 }]]);
  const extender = patientExtender({ urlPrefix: url, preemptVerb: "preempt" });
  const agreed = await extender.preempt(pod, candidates, cluster.snapshot());
  assert.deepEqual(
    [...agreed].map(([node, { pods, violations }]) => [node, pods[0]?.metadata.uid, violations]),
    [["a", "old", 2]],
  );
  assert.equal(calls[0]?.body.NodeNameToVictims.a.Pods[0].metadata.name, "old");
  await patientExtender({ urlPrefix: url, preemptVerb: "preempt", nodeCacheCapable: true }).preempt(
    pod,
    candidates,
    cluster.snapshot(),
  );
  assert.deepEqual(calls[1]?.body.NodeNameToMetaVictims, { a: { Pods: [{ UID: "old" }], NumPDBViolations: 1 } });
});

test("over HTTPS the extender's certificate is verified with the configured CA, and not without one", async (t) => {
  const ca = await newCa({ commonName: "extender-ca" });
  const pair = await newCertificate({ commonName: "extender", ips: ["127.0.0.1"], usages: ["server"], ca });
  const server = createTlsServer({ cert: pair.certPem, key: pair.keyPem }, (_, response) => {
    response.end(JSON.stringify({ NodeNames: ["b"] }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => void server.close());
  const config = {
    urlPrefix: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    filterVerb: "filter",
    nodeCacheCapable: true,
    enableHTTPS: true,
  };
  const pem = (text: string): string => Buffer.from(text).toString("base64");
  assert.equal(await clusterWith({ ...config, tlsConfig: { caData: pem(ca.certPem) } }).place(pod), "b");
  assert.equal(await clusterWith(config).place(pod), "b");
  const inBoth = { caData: pem(ca.certPem), caFile: "/nonexistent" };
  assert.equal(await clusterWith({ ...config, tlsConfig: inBoth }).place(pod), "b", "of data and file the data counts");
  const stranger = await newCa({ commonName: "stranger" });
  await assert.rejects(
    clusterWith({ ...config, tlsConfig: { caData: pem(stranger.certPem) } }).place(pod),
    /certificate|signature/,
  );
});

test("over HTTPS the extender's certificate is that of the configured server name", async (t) => {
  const ca = await newCa({ commonName: "extender-ca" });
  const pair = await newCertificate({ commonName: "extender", dnsNames: ["extender.example"], usages: ["server"], ca });
  const asked: unknown[] = [];
  const server = createTlsServer({ cert: pair.certPem, key: pair.keyPem }, ({ socket }, response) => {
    asked.push((socket as TLSSocket).servername);
    response.end(JSON.stringify({ NodeNames: ["b"] }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => void server.close());
  const config = {
    urlPrefix: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    filterVerb: "filter",
    nodeCacheCapable: true,
    tlsConfig: { caData: Buffer.from(ca.certPem).toString("base64"), serverName: "extender.example" },
  };
  assert.equal(await clusterWith(config).place(pod), "b");
  assert.deepEqual(asked, ["extender.example"]);
});

test("an extender gets the configured client certificate, and its own is not verified when the configuration says so", async (t) => {
  const ca = await newCa({ commonName: "any-ca" });
  const pair = await newCertificate({ commonName: "extender", ips: ["127.0.0.1"], usages: ["server"], ca });
  const client = await newCertificate({ commonName: "scheduler", usages: ["client"], ca });
  const asking = { requestCert: true, ca: ca.certPem };
  const server = createTlsServer({ ...asking, cert: pair.certPem, key: pair.keyPem }, ({ socket }, response) => {
    const { subject } = (socket as TLSSocket).getPeerCertificate();
    response.end(JSON.stringify({ NodeNames: [subject.CN === "scheduler" ? "c" : "a"] }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => void server.close());
  const [certData, keyData] = [client.certPem, client.keyPem].map((text) => Buffer.from(text).toString("base64"));
  const placed = await clusterWith({
    urlPrefix: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    filterVerb: "filter",
    nodeCacheCapable: true,
    tlsConfig: { insecure: true, ...(certData && { certData }), ...(keyData && { keyData }) },
  }).place(pod);
  assert.equal(placed, "c");
});

for (const { name, nodeCacheCapable, answer, want } of [
  { name: "without a cache that answers both", nodeCacheCapable: false, answer: ["Nodes", "NodeNames"], want: "b" },
  { name: "with a cache that answers both", nodeCacheCapable: true, answer: ["Nodes", "NodeNames"], want: "c" },
  { name: "with a cache that answers nodes", nodeCacheCapable: true, answer: ["Nodes"], want: "b" },
  { name: "without a cache that answers names", nodeCacheCapable: false, answer: ["NodeNames"], want: "0/3" },
] as const)
  test(`of the answer of an extender ${name}, ${want === "0/3" ? "nothing is" : `${want} is`} used`, async (t) => {
    const given = { Nodes: { items: [{ metadata: { name: "b" } }] }, NodeNames: ["c"] };
    const { url } = await startExtender(t, { filter: () => Object.fromEntries(answer.map((field) => [field, given[field]])) });
    const placed = await clusterWith({ urlPrefix: url, filterVerb: "filter", nodeCacheCapable }).place(pod);
    assert.equal(placed.slice(0, 3).trim(), want);
  });

for (const { name, victims, message } of [
  { name: "of a node that is not known", victims: { z: { Pods: [] } }, message: 'nodeinfo not found for node name "z"' },
  { name: "that are not in a list", victims: { a: { Pods: "old" } }, message: "extender: URL returned pods that are not a list" },
  {
    name: "that are not on the node",
    victims: { a: { Pods: [{ UID: "old" }, { UID: "other" }] } },
    message: "extender: URL claims to preempt pod (UID: other) on node: a, but the pod is not found on that node",
  },
]) {
  test(`an extender that returns victims ${name} fails the preemption`, async (t) => {
    const { url } = await startExtender(t, { preempt: () => ({ NodeNameToMetaVictims: victims }) });
    const { snapshot } = newTestCluster({ nodes, pods: [aTestPod("old", { on: "a" }), aTestPod("other", { on: "b" })] });
    const extender = patientExtender({ urlPrefix: url, preemptVerb: "preempt" });
    await assert.rejects(extender.preempt(pod, new Map(), snapshot()), { message: message.replace("URL", url) });
  });
}

for (const file of ["caFile", "certFile", "keyFile"])
  test(`an extender whose ${file} cannot be read prevents the start`, () => {
    const config = {
      urlPrefix: "https://127.0.0.1:1",
      filterVerb: "filter",
      enableHTTPS: true,
      tlsConfig: { [file]: "/nowhere" },
    };
    assert.throws(() => newHttpExtender(config), { code: "ENOENT", path: "/nowhere" });
  });

test("an extender behind one that failed filters and scores as without it", async (t) => {
  const failing = await startExtender(t, {});
  const working = await startExtender(t, {
    filter: () => ({ NodeNames: ["b", "c"] }),
    prioritize: () => [{ Host: "c", Score: 10 }],
  });
  const extenders = [failing, working].map(({ url }) =>
    patientExtender({
      ...{ urlPrefix: url, filterVerb: "filter", prioritizeVerb: "prioritize" },
      ...{ weight: 5, nodeCacheCapable: true, ignorable: true },
    }),
  );
  assert.equal(await newTestCluster({ nodes, extenders }).place(pod), "c");
  assert.deepEqual(
    working.calls.map(({ path }) => path),
    ["filter", "prioritize"],
  );
  assert.deepEqual(working.calls[0]?.body.NodeNames.toSorted(), ["a", "b", "c"]);
});
