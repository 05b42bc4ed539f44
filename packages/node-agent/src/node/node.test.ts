import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import type { Client } from "@coxswain/apimachinery/client/client";
import { loadKubeconfig } from "@coxswain/apimachinery/client/kubeconfig";
import { conflict, notFound, serviceUnavailable } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Lease } from "@coxswain/apimachinery/objects/schema/kinds/coordination/v1";
import type { NodeStatus } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { leases } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newCa, newCertificate, signCertificateRequest, subjectOf } from "@coxswain/apimachinery/serving/certificates";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { bootstrapKubeconfig, rotateCertificate, rotationTime, servingCertificateFile } from "./certificates.ts";
import { runNodeLease } from "./lease.ts";
import { initialNode, type NodeStatusInput, nodeEvents, nodeStatus, statusChanged } from "./node-status.ts";

const input: NodeStatusInput = {
  machine: {
    cpuCount: 4,
    memoryBytes: 8 * 1024 ** 3,
    swaps: ["Filename"],
    maxPids: 32_768,
    machineId: "m",
    systemUuid: "u",
    bootId: "b",
    kernelVersion: "6.1",
    osImage: "Test OS",
    architecture: "amd64",
    hostname: "n1",
    hugePages: {},
    pageSizes: [],
  },
  hostname: "n1",
  ips: ["192.0.2.1"],
  maxPods: 110,
  storageBytes: 100 * 1024 ** 3,
  reserved: { kube: { cpu: "500m" }, system: {}, evictionHard: { "memory.available": "100Mi" } },
  runtime: { name: "containerd", version: "1.6.20" },
  kubeletPort: 10250,
  images: [],
  maxImages: 50,
  conditions: { problems: [], appArmor: false, memoryPressure: false, diskPressure: false, pidPressure: false },
  current: undefined,
  now: Date.parse("2026-01-01T00:00:00Z"),
};
const ready = (status: NodeStatus): unknown => {
  const found = (status.conditions ?? []).find(({ type }) => type === "Ready");
  return { status: found?.status, reason: found?.reason, message: found?.message };
};

test("a status has changed if a condition has, not if heartbeats or the order of conditions differ", () => {
  const status = nodeStatus(input);
  const { conditions = [] } = nodeStatus({ ...input, current: status, now: input.now + 60_000 });
  assert.equal(statusChanged({ ...status, conditions: conditions.toReversed() }, status, isDeepStrictEqual), false);
  const other = nodeStatus({ ...input, conditions: { ...input.conditions, problems: ["no network"] } });
  assert.equal(statusChanged(status, other, isDeepStrictEqual), true);
});

test("huge pages are reported by page size and subtracted from allocatable memory", () => {
  const machine = { ...input.machine, hugePages: { "1Gi": 0, "2Mi": 1024 ** 3 } };
  const { capacity, allocatable } = nodeStatus({ ...input, machine });
  assert.deepEqual([capacity?.["hugepages-2Mi"], capacity?.["hugepages-1Gi"], capacity?.memory], ["1Gi", "0", "8Gi"]);
  assert.deepEqual([allocatable?.["hugepages-2Mi"], allocatable?.memory], ["1Gi", "7068Mi"]);
});

const statusWith = (status: "True" | "False" | "Unknown", bootID = "b"): NodeStatus => ({
  conditions: ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"].map((type) => ({ type, status })),
  nodeInfo: { bootID } as NonNullable<NodeStatus["nodeInfo"]>,
});
for (const { name, before, after, want } of [
  {
    name: "is new",
    before: undefined,
    after: statusWith("False"),
    want: ["NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID"],
  },
  { name: "stays as it was", before: statusWith("True"), after: statusWith("True"), want: [] },
  {
    name: "recovers from pressure and is not ready any more",
    before: statusWith("True"),
    after: statusWith("False"),
    want: ["NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID", "NodeNotReady"],
  },
  {
    name: "was not heard of for a while",
    before: statusWith("Unknown"),
    after: statusWith("True"),
    want: ["NodeHasInsufficientMemory", "NodeHasDiskPressure", "NodeHasInsufficientPID", "NodeReady"],
  },
  { name: "did not report a boot ID yet", before: statusWith("False", ""), after: statusWith("False"), want: [] },
  { name: "has been rebooted", before: statusWith("False", "old"), after: statusWith("False"), want: ["Rebooted"] },
]) {
  test(`a node that ${name} reports ${want.join() || "nothing"}`, () =>
    assert.deepEqual(
      nodeEvents("n1", before, after).map(({ reason }) => reason),
      want,
    ));
}

test("a node reports its capacity and what is allocatable for pods", () => {
  const status = nodeStatus(input);
  assert.deepEqual(status.capacity, { cpu: "4", "ephemeral-storage": "100Gi", memory: "8Gi", pods: "110" });
  assert.partialDeepStrictEqual(status.allocatable, { cpu: "3500m", memory: "8092Mi", pods: "110" });
  assert.deepEqual(status.addresses, [
    { type: "InternalIP", address: "192.0.2.1" },
    { type: "Hostname", address: "n1" },
  ]);
  assert.partialDeepStrictEqual(status.nodeInfo, {
    containerRuntimeVersion: "containerd://1.6.20",
    kubeletVersion: "v1.23.0",
    operatingSystem: "linux",
  });
  assert.deepEqual(
    (status.conditions ?? []).map(({ type, status: value, reason }) => `${type}=${value} ${reason}`),
    [
      "MemoryPressure=False KubeletHasSufficientMemory",
      "DiskPressure=False KubeletHasNoDiskPressure",
      "PIDPressure=False KubeletHasSufficientPID",
      "Ready=True KubeletReady",
    ],
  );
});

test("a node that is not ready reports all reasons", () => {
  const one = nodeStatus({ ...input, conditions: { ...input.conditions, problems: ["container runtime is down"] } });
  assert.deepEqual(ready(one), { status: "False", reason: "KubeletNotReady", message: "container runtime is down" });
  const two = nodeStatus({ ...input, conditions: { ...input.conditions, problems: ["a", "b"] } });
  assert.deepEqual(ready(two), { status: "False", reason: "KubeletNotReady", message: "[a, b]" });
});

test("status fields of other writers are kept, and a condition's transition time changes only with its status", () => {
  const old = nodeStatus({ ...input, now: Date.parse("2025-01-01T00:00:00Z") });
  const current: NodeStatus = {
    ...old,
    capacity: { ...old.capacity, "example.com/gpu": "2" },
    allocatable: { ...old.allocatable, "example.com/gpu": "2" },
    conditions: [...(old.conditions ?? []), { type: "NetworkUnavailable", status: "False" }],
  };
  const status = nodeStatus({ ...input, current, conditions: { ...input.conditions, problems: ["x"] } });
  assert.equal(status.capacity?.["example.com/gpu"], "2");
  assert.equal(status.allocatable?.["example.com/gpu"], "2");
  assert.ok((status.conditions ?? []).some(({ type }) => type === "NetworkUnavailable"));
  const time = (type: string): unknown =>
    (status.conditions ?? []).find((condition) => condition.type === type)?.lastTransitionTime;
  assert.deepEqual([time("Ready"), time("DiskPressure")], ["2026-01-01T00:00:00Z", "2025-01-01T00:00:00Z"]);
});

test("only extended resources of other writers are kept, not a page size that the machine no longer has", () => {
  const amounts = { "hugepages-64Ki": "1Gi", "example.com/gpu": "2" };
  const { capacity, allocatable } = nodeStatus({ ...input, current: { capacity: amounts, allocatable: amounts } });
  for (const shown of [capacity, allocatable])
    assert.deepEqual([shown?.["example.com/gpu"], shown?.["hugepages-64Ki"]], ["2", undefined]);
});

test("an extended resource that the capacity does not list is not allocatable", () => {
  const current = { capacity: { "example.com/gpu": "2" }, allocatable: { "example.com/gpu": "1", "example.com/gone": "1" } };
  const { allocatable } = nodeStatus({ ...input, current });
  assert.deepEqual([allocatable?.["example.com/gpu"], allocatable?.["example.com/gone"]], ["2", undefined]);
});

test("the list of volumes in use is emptied with the last volume, and not touched while it is not known", () => {
  const shown = (volumesInUse: readonly string[] | undefined, before: string[] | undefined): unknown =>
    nodeStatus({ ...input, volumesInUse, current: before && { volumesInUse: before } }).volumesInUse;
  assert.deepEqual([shown(["v1"], undefined), shown([], ["v1"]), shown(undefined, ["v1"])], [["v1"], [], ["v1"]]);
  assert.equal(shown([], undefined), undefined);
});

test("images are reported by descending size, up to the configured number", () => {
  const image = (name: string, size: number): NodeStatusInput["images"][number] => ({
    id: name,
    repoTags: [name],
    repoDigests: [],
    size,
    uid: null,
    username: "",
    spec: null,
    pinned: false,
  });
  const images = [image("small", 1), image("large", 3), image("middle", 2)];
  assert.deepEqual(
    nodeStatus({ ...input, images, maxImages: 2 }).images?.map(({ names }) => names?.[0]),
    ["large", "middle"],
  );
  const reported = (maxImages: number) => nodeStatus({ ...input, images, maxImages }).images?.length;
  assert.deepEqual([reported(-1), reported(0)], [3, 0]);
  const known = { ...image("many", 1), repoDigests: ["d1", "d2"], repoTags: ["t1", "t2", "t3", "t4"] };
  const [shown] = nodeStatus({ ...input, images: [known], maxImages: 1 }).images ?? [];
  assert.deepEqual(shown?.names, ["d1", "d2", "t1", "t2", "t3"], "five of its names");
});

test("the message of a ready node says whether it enforces AppArmor profiles", () => {
  const message = (appArmor: boolean): unknown =>
    nodeStatus({ ...input, conditions: { ...input.conditions, appArmor } }).conditions?.find(({ type }) => type === "Ready")
      ?.message;
  assert.deepEqual(
    [message(false), message(true)],
    ["kubelet is posting ready status", "kubelet is posting ready status. AppArmor enabled"],
  );
});

test("a new node has its labels, and taints when it is unschedulable or a cloud provider must initialize it", () => {
  const node = initialNode({
    name: "n1",
    hostname: "n1",
    labels: { team: "x" },
    taints: [],
    schedulable: false,
    providerId: "p://1",
    externalCloud: true,
    architecture: "arm64",
    controllerAttachDetach: true,
    keepTerminatedPodVolumes: false,
  });
  assert.partialDeepStrictEqual(node.metadata.labels, {
    team: "x",
    "kubernetes.io/arch": "arm64",
    "kubernetes.io/hostname": "n1",
    "beta.kubernetes.io/os": "linux",
  });
  assert.deepEqual(node.spec, {
    taints: [
      { key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" },
      { key: "node.cloudprovider.kubernetes.io/uninitialized", value: "true", effect: "NoSchedule" },
    ],
    unschedulable: true,
    providerID: "p://1",
  });
});

test("the lease is created, renewed four times within its duration, and read again after a conflict", async () => {
  const clock = newFakeClock();
  const calls: string[] = [];
  let stored: Lease | undefined;
  let clash = false;
  const client = {
    async get() {
      calls.push("get");
      if (stored === undefined) throw notFound(leases, "n1");
      return stored;
    },
    async create(_: unknown, lease: Lease) {
      calls.push("create");
      stored = lease;
      return lease;
    },
    async update(_: unknown, lease: Lease) {
      calls.push("update");
      if (clash) {
        clash = false;
        throw conflict(leases, "n1", "changed");
      }
      stored = lease;
      return lease;
    },
  } as unknown as Client;
  const stop = new AbortController();
  const node = { metadata: { uid: "node-uid" }, spec: {} };
  const done = runNodeLease(
    { client, clock, log: discardLogger, nodeName: "n1", durationSeconds: 40, node: () => node },
    stop.signal,
  );
  await settle();
  assert.deepEqual(calls, ["get", "create"]);
  hasFields(stored, {
    metadata: { name: "n1", namespace: "kube-node-lease", ownerReferences: [{ kind: "Node", uid: "node-uid" }] },
    spec: { holderIdentity: "n1", leaseDurationSeconds: 40, renewTime: "2022-01-01T00:00:00.000000Z" },
  });
  await clock.advance(10_000);
  assert.deepEqual(calls.splice(0), ["get", "create", "update"]);
  clash = true;
  await clock.advance(10_000);
  assert.deepEqual(calls, ["update", "get", "update"]);
  stop.abort();
  await clock.advance(10_000);
  await done;
});

async function tempDir(t: TestContext): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "cox-node-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

test("a node without a kubeconfig waits for the server, requests a certificate and writes a kubeconfig", async (t) => {
  const dir = await tempDir(t);
  const ca = await newCa({ commonName: "ca" });
  const bootstrap = join(dir, "bootstrap.conf");
  await writeFile(
    bootstrap,
    JSON.stringify({
      "current-context": "c",
      clusters: [
        {
          name: "c",
          cluster: {
            server: "https://api.example:6443",
            "certificate-authority-data": Buffer.from(ca.certPem).toString("base64"),
          },
        },
      ],
      contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
      users: [{ name: "u", user: { token: "abcdef.0123456789abcdef" } }],
    }),
  );
  let requested: { spec: { request: string; signerName: string; usages: string[] } } | undefined;
  let readinessRequests = 0;
  let polls = 0;
  const client = {
    /** The server becomes ready after the second attempt. */
    async raw() {
      assert.equal(requested, undefined, "nothing is requested before the server is ready");
      if (readinessRequests++ === 0) throw Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
      return { status: readinessRequests === 2 ? 500 : 200, headers: {}, body: Buffer.alloc(0) };
    },
    async create(_: unknown, request: NonNullable<typeof requested>) {
      requested = request;
      return { metadata: { name: "csr-1" } };
    },
    async get() {
      if (polls++ === 0) throw serviceUnavailable("it restarts");
      const csrPem = Buffer.from(requested?.spec.request ?? "", "base64").toString();
      const certificate = await signCertificateRequest({
        csrPem,
        ca,
        usages: ["client auth"],
        notBefore: new Date(Date.now() - 1000),
        notAfter: new Date(Date.now() + 3_600_000),
      });
      return {
        status: { conditions: [{ type: "Approved", status: "True" }], certificate: Buffer.from(certificate).toString("base64") },
      };
    },
    close: () => undefined,
  } as unknown as Client;
  const path = join(dir, "kubelet.conf");
  const options = { nodeName: "n1", certDir: join(dir, "pki"), rotates: true, clock: realClock, log: discardLogger };
  await bootstrapKubeconfig(path, bootstrap, options, new AbortController().signal, () => client);
  hasFields(requested?.spec, {
    signerName: "kubernetes.io/kube-apiserver-client-kubelet",
    usages: ["digital signature", "key encipherment", "client auth"],
  });
  const config = await loadKubeconfig(path);
  assert.partialDeepStrictEqual(config, {
    host: "https://api.example:6443",
    certFile: join(dir, "pki/kubelet-client-current.pem"),
  });
  const certificate = new X509Certificate(await readFile(config.certFile ?? ""));
  assert.deepEqual(subjectOf(certificate), { commonName: "system:node:n1", organizations: ["system:nodes"] });
  assert.equal((await stat(config.keyFile ?? "")).mode & 0o777, 0o600);

  requested = undefined;
  await bootstrapKubeconfig(path, bootstrap, options, new AbortController().signal, () => client);
  assert.equal(requested, undefined, "a good certificate is kept");
  assert.equal((await readdir(join(dir, "pki"))).length, 2);
});

test("without certificate rotation a node waits a minute for the server, then a failed request ends the agent", async (t) => {
  const dir = await tempDir(t);
  const bootstrap = join(dir, "bootstrap.conf");
  const clusters = [{ name: "c", cluster: { server: "https://api.example:6443" } }];
  const contexts = [{ name: "c", context: { cluster: "c", user: "u" } }];
  const users = [{ name: "u", user: { token: "abcdef.0123456789abcdef" } }];
  await writeFile(bootstrap, JSON.stringify({ "current-context": "c", clusters, contexts, users }));
  const refused = async (): Promise<never> => {
    throw Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
  };
  const clock = newFakeClock();
  let endedAtMs: number | undefined;
  const startedMs = clock.monotonic();
  const client = { raw: refused, create: refused, close: () => undefined } as unknown as Client;
  const options = { nodeName: "n1", certDir: join(dir, "pki"), rotates: false, clock, log: discardLogger };
  const signal = new AbortController().signal;
  const ended = bootstrapKubeconfig(join(dir, "kubelet.conf"), bootstrap, options, signal, () => client).catch((err: unknown) => {
    endedAtMs = clock.monotonic() - startedMs;
    return err;
  });
  await waitFor(async () => {
    await clock.advance(500);
    return endedAtMs !== undefined;
  });
  assert.match(String(await ended), /ECONNREFUSED/);
  assert.ok((endedAtMs ?? 0) >= 60_000, `it ended after ${endedAtMs} ms`);
});

test("a node that requests a serving certificate uses a self-signed one until the request is signed", async (t) => {
  const dir = await tempDir(t);
  const ca = await newCa({ commonName: "ca" });
  const own = await newCertificate({ commonName: "self", usages: ["server"], ca });
  const selfSigned = async () => {
    await writeFile(join(dir, "kubelet.crt"), own.certPem);
    await writeFile(join(dir, "kubelet.key"), own.keyPem);
    return { certFile: join(dir, "kubelet.crt"), keyFile: join(dir, "kubelet.key") };
  };
  const file = await servingCertificateFile(dir, selfSigned);
  const shown = async (): Promise<X509Certificate> => new X509Certificate(await readFile(file));
  assert.equal((await shown()).fingerprint256, new X509Certificate(own.certPem).fingerprint256);

  let requested: { spec: { request: string; signerName: string; usages: string[] } } | undefined;
  let approved = false;
  const client = {
    async create(_: unknown, request: NonNullable<typeof requested>) {
      requested = request;
      return { metadata: { name: "csr-1" } };
    },
    async get() {
      if (!approved) return {};
      const certificate = await signCertificateRequest({
        csrPem: Buffer.from(requested?.spec.request ?? "", "base64").toString(),
        ca,
        usages: ["server auth"],
        notBefore: new Date(clock.now() - 1000),
        notAfter: new Date(clock.now() + 3_600_000),
      });
      const conditions = [{ type: "Approved", status: "True" }];
      return { status: { conditions, certificate: Buffer.from(certificate).toString("base64") } };
    },
  } as unknown as Client;
  const clock = newFakeClock();
  const stop = new AbortController();
  let rotations = 0;
  const names = () => ({ dnsNames: ["n1"], ips: ["192.0.2.7"] });
  const onRotated = (): void => void rotations++;
  const options = { nodeName: "n1", certDir: dir, clock, log: discardLogger, purpose: "server" as const, names, onRotated };
  const running = rotateCertificate(client, options, stop.signal);
  await waitFor(() => clock.waiting > 0, { what: "the request" });
  hasFields(requested?.spec, {
    signerName: "kubernetes.io/kubelet-serving",
    usages: ["digital signature", "key encipherment", "server auth"],
  });
  assert.equal(rotations, 0);
  approved = true;
  await waitFor(
    async () => {
      await clock.advance(2_000);
      return rotations > 0;
    },
    { what: "the certificate" },
  );
  const certificate = await shown();
  assert.deepEqual(subjectOf(certificate), { commonName: "system:node:n1", organizations: ["system:nodes"] });
  assert.equal(certificate.subjectAltName, "DNS:n1, IP Address:192.0.2.7");
  assert.equal(await servingCertificateFile(dir, () => assert.fail("it has one")), file);
  await waitFor(
    async () => {
      await clock.advance(100_000);
      return rotations > 1;
    },
    { what: "its renewal" },
  );
  stop.abort();
  await clock.advance(2_000);
  await running;
});

test("a certificate is renewed at 70 to 90 per cent of its life", () => {
  assert.deepEqual([rotationTime(0, 1000, 0), rotationTime(0, 1000, 0.5)], [700, 800]);
});
