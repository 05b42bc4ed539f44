import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { Client } from "@coxswain/apimachinery/client/client";
import { newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import { gatherFacts, samplesOf } from "./facts.ts";

const nowhere = { folders: [], data: [] };

test("a failed request is named, and the other facts are still collected", async () => {
  const client = {
    raw: async (_: string, path: string) => {
      if (path === "/metrics") throw new Error("cannot read", { cause: new Error("socket hang up") });
      if (path.startsWith("/readyz"))
        return { status: 500, headers: {}, body: Buffer.from("[+]ping ok\n[-]etcd failed: reason withheld\n") };
      return { status: 200, headers: { date: new Date().toUTCString() }, body: Buffer.from('{"gitVersion":"v1.23.0"}') };
    },
    list: async ({ resource }: { resource: string }) => {
      if (resource === "nodes") throw new Error("nodes is forbidden");
      return { items: [] };
    },
  } as unknown as Client;
  const facts = await gatherFacts({ client, ...nowhere });
  assert.deepEqual(facts.unread, ["/metrics: cannot read: socket hang up", "nodes: nodes is forbidden"]);
  assert.deepEqual(
    [facts.unready, facts.serverVersion, facts.unreachable],
    [["etcd: failed: reason withheld"], "v1.23.0", undefined],
  );
  assert.ok(Math.abs(facts.clockMs ?? 1e9) < 5_000);
});

test("without an answer of the server the facts of this machine are collected", async () => {
  const refuse = { raw: () => Promise.reject(new Error("connect ECONNREFUSED 127.0.0.1:1")) } as unknown as Client;
  const facts = await gatherFacts({ client: refuse, folders: [], data: ["/"] });
  assert.equal(facts.unreachable, "connect ECONNREFUSED 127.0.0.1:1");
  assert.equal(facts.disks[0]?.path, "/");
  assert.equal((await gatherFacts({ client: undefined, noClient: "no admin.conf", ...nowhere })).unreachable, "no admin.conf");
});

/** A server that answers these paths with these texts, others with 404, and lists with these objects. */
function aServer(pages: Readonly<Record<string, string>>, lists: Readonly<Record<string, readonly object[]>> = {}) {
  const listed: unknown[] = [];
  const client = {
    raw: async (verb: string, path: string) => {
      assert.equal(verb, "GET");
      const page = pages[path];
      return { status: page === undefined ? 404 : 200, headers: {}, body: Buffer.from(page ?? "not found") };
    },
    list: async (ref: { group: string; version: string; resource: string }, _: object, options: Record<string, unknown>) => {
      const { signal, ...more } = options;
      assert.ok(signal instanceof AbortSignal);
      const name = [ref.group, ref.version, ref.resource].filter((part) => part !== "").join("/");
      listed.push({ name, ...more });
      return { items: lists[name] ?? [] };
    },
  } as unknown as Client;
  return { client, listed };
}

test("each list goes to its fact, with at most 2000 objects; of the pods only the failed ones", async () => {
  const named = (name: string): object => ({ metadata: { name } });
  const sources: Readonly<Record<string, string>> = {
    nodes: "v1/nodes",
    leases: "coordination.k8s.io/v1/leases",
    apiServices: "apiregistration.k8s.io/v1/apiservices",
    services: "v1/services",
    quotas: "v1/resourcequotas",
    failedPods: "v1/pods",
    namespaces: "v1/namespaces",
    signingRequests: "certificates.k8s.io/v1/certificatesigningrequests",
  };
  const webhooks = ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"].map(
    (resource) => `admissionregistration.k8s.io/v1/${resource}`,
  );
  const all = [...Object.values(sources), ...webhooks];
  const { client, listed } = aServer(
    { "/version": "{}", "/metrics": "" },
    Object.fromEntries(all.map((name) => [name, [named(name)]])),
  );
  const facts = await gatherFacts({ client, ...nowhere });
  for (const [key, name] of Object.entries(sources)) assert.deepEqual(facts[key as "nodes"], [named(name)], key); // cast: a key of the table
  assert.deepEqual(facts.webhooks, webhooks.map(named));
  assert.deepEqual(
    new Set(listed),
    new Set(all.map((name) => ({ name, limit: 2_000, ...(name === "v1/pods" && { fieldSelector: "status.phase=Failed" }) }))),
  );
  assert.equal("clockMs" in facts, false, "without a Date header");
  // The answer to /readyz counts with any status, since it names what fails.
  assert.deepEqual([facts.unread, facts.unready, facts.metrics], [[], [], []]);
});

test("a page that is refused is named; of /readyz each line that is not ok is a fact", async () => {
  const readyz = "[+]ping ok\n[+]x excluded: ok\n[-]etcd failed: reason withheld\nreadyz check failed\n";
  const { client } = aServer({ "/version": '{"gitVersion":"v1.23.1"}', "/readyz?verbose": readyz });
  const facts = await gatherFacts({ client, ...nowhere });
  assert.deepEqual(facts.unread, ["/metrics: status 404"]);
  assert.deepEqual(facts.unready, ["x: excluded: ok", "etcd: failed: reason withheld"]);
  assert.equal(facts.serverVersion, "v1.23.1");
  const refused = aServer({ "/metrics": "" });
  assert.equal("serverVersion" in (await gatherFacts({ client: refused.client, ...nowhere })), false);
});

test("the clock's difference counts from the middle of the request and of the header's second", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: Date.parse("2026-03-01T12:00:00Z") });
  const { client } = aServer({ "/metrics": "" });
  const raw = client.raw.bind(client);
  const late = {
    ...client,
    raw: async (...args: Parameters<Client["raw"]>) => {
      if (args[1] !== "/version") return raw(...args);
      t.mock.timers.setTime(Date.now() + 4_000);
      return { status: 200, headers: { date: "Sun, 01 Mar 2026 12:00:10 GMT" }, body: Buffer.from("{}") };
    },
  } as unknown as Client;
  const facts = await gatherFacts({ client: late, ...nowhere });
  assert.deepEqual([facts.now, facts.clockMs], [Date.parse("2026-03-01T12:00:00Z"), 8_500]);
});

test("a deprecated version that was requested is named with who writes it, and whether there is another", async () => {
  const metric = (group: string, version: string, resource: string, value: number): string =>
    `apiserver_requested_deprecated_apis{group="${group}",removed_release="1.25",resource="${resource}",subresource="",version="${version}"} ${value}\n`;
  const managed = (...fields: [string | undefined, string][]): object => ({
    metadata: { managedFields: fields.map(([manager, apiVersion]) => ({ manager, apiVersion })) },
  });
  const { client } = aServer(
    {
      "/version": "{}",
      "/metrics": `${metric("policy", "v1beta1", "poddisruptionbudgets", 1)}${metric("policy", "v1beta1", "podsecuritypolicies", 1)}${metric("batch", "v1beta1", "cronjobs", 0)}${metric("", "v1", "componentstatuses", 1)}`,
      "/apis/policy": '{"versions": [{"version": "v1beta1"}, {"version": "v0"}, {"version": "v1"}]}',
      "/apis/policy/v0": '{"resources": [{"name": "poddisruptionbudgets/status"}]}',
      "/apis/policy/v1": '{"resources": [{"name": "x"}, {"name": "poddisruptionbudgets"}]}',
      "/apis/policy/v1beta1": '{"resources": [{"name": "podsecuritypolicies"}]}',
      "/apis/": "{}",
    },
    {
      "policy/v1beta1/poddisruptionbudgets": [
        managed(["kubectl", "policy/v1beta1"], ["helm", "policy/v1beta1"], ["new", "policy/v1"]),
        managed([undefined, "policy/v1beta1"], ["kubectl", "policy/v1beta1"]),
        { metadata: {} },
      ],
      "v1/componentstatuses": [managed(["old", "v1"])],
    },
  );
  const common = { removedIn: "1.25" };
  assert.deepEqual((await gatherFacts({ client, ...nowhere })).deprecated, [
    { ...common, version: "policy/v1beta1", resource: "poddisruptionbudgets", users: ["helm", "kubectl"], isOnlyVersion: false },
    { ...common, version: "policy/v1beta1", resource: "podsecuritypolicies", users: [], isOnlyVersion: true },
    { ...common, version: "v1", resource: "componentstatuses", users: ["old"], isOnlyVersion: true },
  ]);
});

function newFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "doctor-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test("certificates are found to a depth of three, all of a file, also those in kubeconfigs; disks where there is a folder", async (t) => {
  const folders = [newFolder(t), newFolder(t)];
  const ca = await newCa({ commonName: "ca", validDays: 30 });
  const pair = await newCertificate({ ca, commonName: "one", organizations: ["g1"], usages: ["client"], validDays: 3 });
  const data = Buffer.from(pair.certPem).toString("base64");
  mkdirSync(join(folders[0]!, "a", "b", "c"), { recursive: true });
  const put = (name: string, text: string): void => writeFileSync(join(folders[0]!, name), text);
  put("a/b/both.pem", `${pair.certPem}some text\n${ca.certPem}`);
  put("ca.crt", ca.certPem);
  put("a/b/c/deep.crt", ca.certPem);
  put("damaged.crt", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
  put("key.key", pair.keyPem);
  put(
    "a/token.conf",
    JSON.stringify({ users: [{ user: { token: "x" } }, { name: "empty" }, { user: { "client-certificate-data": data } }] }),
  );
  put("a/bad.conf", "null");
  writeFileSync(join(folders[1]!, "x.crt"), ca.certPem);
  const { certificates, disks, unreachable } = await gatherFacts({
    client: undefined,
    folders: [...folders, join(folders[0]!, "none")],
    data: [folders[0]!, join(folders[0]!, "none"), "/"],
  });
  assert.equal(unreachable, "there is no kubeconfig");
  const one = "O=g1, CN=one";
  assert.deepEqual(
    certificates.map(({ file, subject, begins, ends }) => [file, subject, Math.round((ends - begins) / 86_400_000)]),
    [
      [join(folders[0]!, "a/b/both.pem"), one, 3],
      [join(folders[0]!, "a/b/both.pem"), "CN=ca", 30],
      [join(folders[0]!, "a/token.conf"), one, 3],
      [join(folders[0]!, "ca.crt"), "CN=ca", 30],
      [join(folders[1]!, "x.crt"), "CN=ca", 30],
    ],
  );
  assert.deepEqual(
    disks.map(({ path, totalBytes }) => [path, totalBytes]),
    [folders[0]!, "/"].map((path) => [path, statfsSync(path).blocks * statfsSync(path).bsize]),
  );
  assert.ok(disks.every(({ freeBytes, totalBytes }) => freeBytes >= 0 && freeBytes <= totalBytes));
});

test("samples are the lines of a page that have a value, with their labels", () => {
  assert.deepEqual(samplesOf('# HELP a b\na 1\nb{x="1",y="a,}\\"b"} 2.5e+06\nc{} +Inf\n\nbroken\nd:e_total{z=""} 0'), [
    { name: "a", labels: {}, value: 1 },
    { name: "b", labels: { x: "1", y: 'a,}\\"b' }, value: 2.5e6 },
    { name: "c", labels: {}, value: Number.NaN },
    { name: "d:e_total", labels: { z: "" }, value: 0 },
  ]);
});
