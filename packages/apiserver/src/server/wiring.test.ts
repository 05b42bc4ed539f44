/** Flags whose values only `connectModules` and the start pass on: each reaches the part that it is for. */
import assert from "node:assert/strict";
import { createPrivateKey } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newCa, newServiceAccountKey } from "@coxswain/apimachinery/serving/certificates";
import { startEtcd } from "@coxswain/apimachinery/testing/etcd";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { CompactSign } from "jose";
import { launchTestServer, startTestServer } from "../testing/start-test-server.ts";

const directory = mkdtempSync(join(tmpdir(), "cox-wiring-"));
after(() => rmSync(directory, { recursive: true, force: true }));
const clientCa = join(directory, "client-ca.crt");
const [first, second] = [await newCa({ commonName: "first" }), await newCa({ commonName: "second" })];
writeFileSync(clientCa, first.certPem);
const accountKey = newServiceAccountKey();
const accountKeys = ["sa.pub", "sa.key"].map((name) => join(directory, name));
for (const [i, pem] of [accountKey.pubPem, accountKey.keyPem].entries()) writeFileSync(accountKeys[i]!, pem, { mode: 0o600 });
const accountFlags = [`--service-account-key-file=${accountKeys[0]}`, `--service-account-signing-key-file=${accountKeys[1]}`];
const { endpoint } = await startEtcd();
const warnings: string[] = [];
const server = await startTestServer(
  { after },
  [
    `--client-ca-file=${clientCa}`,
    ...accountFlags,
    "--service-account-lookup=false",
    "--authorization-mode=AlwaysAllow",
    "--min-request-timeout=1",
    "--disable-admission-plugins=ServiceAccount",
    "--apiserver-count=2",
    "--max-requests-inflight=100",
    "--max-mutating-requests-inflight=300",
    "--feature-gates=APIServerIdentity=true",
    "--identity-lease-renew-interval-seconds=1",
    `--etcd-servers-overrides=/events#${endpoint.replace("127.0.0.1", "localhost")}`,
  ],
  { ...discardLogger, warn: (message: string) => void warnings.push(message) },
);

const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const definition = await server.request("POST", definitions, {
  metadata: { name: "widgets.example.com" },
  spec: {
    ...{ group: "example.com", scope: "Cluster", names: { kind: "Widget", plural: "widgets" } },
    versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: { type: "object" } } }],
  },
});

test("with AlwaysAllow, anonymous requests are refused all the same, and the log says so", async () => {
  assert.equal((await server.request("GET", "/api/v1/secrets", undefined, { authorization: undefined })).code, 401);
  assert.equal((await server.request("GET", "/api/v1/secrets")).code, 200);
  assert.ok(
    warnings.some((text) => text.startsWith("AnonymousAuth is not allowed with the AlwaysAllow authorizer")),
    warnings.join("\n"),
  );
});

test("--service-account-lookup=false: the token of a Secret that is gone is good, and unless the flag is given it is not", async (t) => {
  const account = "kubernetes.io/serviceaccount";
  const claims = {
    ...{ iss: "kubernetes/serviceaccount", sub: "system:serviceaccount:default:robot", [`${account}/namespace`]: "default" },
    ...{
      [`${account}/secret.name`]: "gone",
      [`${account}/service-account.name`]: "robot",
      [`${account}/service-account.uid`]: "u",
    },
  };
  const token = await new CompactSign(Buffer.from(JSON.stringify(claims)))
    .setProtectedHeader({ alg: "RS256" })
    .sign(createPrivateKey(accountKey.keyPem));
  const looking = await startTestServer(t, accountFlags);
  const codes = [server, looking].map(
    async (one) => (await one.request("GET", "/api", undefined, { authorization: `Bearer ${token}` })).code,
  );
  assert.deepEqual(await Promise.all(codes), [200, 401]);
});

test("--min-request-timeout is in seconds: a watch without a timeout ends no earlier", async () => {
  const began = performance.now();
  await server.request("GET", "/api/v1/namespaces?watch=true");
  assert.ok(performance.now() - began >= 1_000);
});

test("--identity-lease-renew-interval-seconds: the lease of the server is renewed", async () => {
  const renewed = async (): Promise<string> => {
    const { body } = await server.request("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases");
    return body.items.find(({ metadata }: { metadata: { name: string } }) => metadata.name.startsWith("kube-apiserver-")).spec
      .renewTime;
  };
  const before = await renewed();
  await waitFor(async () => (await renewed()) > before, { what: "the renewal" });
});

test("authorities of clients that change after the start are published for other API servers", async () => {
  const published = async (): Promise<string> =>
    (await server.request("GET", "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication")).body.data[
      "client-ca-file"
    ];
  assert.equal(await published(), first.certPem);
  writeFileSync(clientCa, first.certPem + second.certPem);
  // It is read again within a minute, even where the file system does not announce the change.
  await waitFor(async () => (await published()).includes(second.certPem), { what: "the new authority", timeoutMs: 180_000 });
});

test("the etcd of --etcd-servers-overrides has a component status, too", async () => {
  const { body } = await server.request("GET", "/api/v1/componentstatuses");
  const names = body.items.map(({ metadata }: { metadata: { name: string } }) => metadata.name);
  assert.deepEqual(names, ["controller-manager", "scheduler", "etcd-0", "etcd-1"]);
  for (const [query, names] of [
    ["labelSelector=a", []],
    ["labelSelector=!a&fieldSelector=metadata.name%3Detcd-1", ["etcd-1"]],
  ] as const) {
    const { items } = (await server.request("GET", `/api/v1/componentstatuses?${query}`)).body;
    assert.deepEqual(
      items.map(({ metadata }: { metadata: { name: string } }) => metadata.name),
      names,
    );
  }
  const { conditions } = (await server.request("GET", "/api/v1/componentstatuses/etcd-1")).body;
  hasFields(conditions, [{ type: "Healthy", status: "True" }]);
});

test("a node that claims this server's own address and port is not connected to", async () => {
  const status = {
    addresses: [{ type: "InternalIP", address: "127.0.0.1" }],
    daemonEndpoints: { kubeletEndpoint: { Port: server.port } },
  };
  assert.equal((await server.request("POST", "/api/v1/nodes", { metadata: { name: "self" }, status })).code, 201);
  const pods = "/api/v1/namespaces/default/pods";
  const spec = { nodeName: "self", containers: [{ name: "c", image: "i" }] };
  assert.equal((await server.request("POST", pods, { metadata: { name: "web" }, spec })).code, 201);
  const { code, body } = await server.request("GET", `${pods}/web/log`);
  assert.deepEqual([code, body.message], [400, "address not allowed"]);
});

test("both limits of requests count for priority and fairness", async () => {
  const { text } = await server.request("GET", "/metrics");
  const limits = [...text.matchAll(/^apiserver_flowcontrol_request_concurrency_limit\{[^}]*\} (\d+)$/gm)].map(([, one]) =>
    Number(one),
  );
  const sum = limits.reduce((all, one) => all + one, 0);
  // Each level's share is rounded up.
  assert.ok(sum >= 400 && sum <= 400 + limits.length, `${limits.join(" + ")} = ${sum}`);
});

test("--apiserver-count=2: a definition is established once the other server has had five seconds to see it", async () => {
  assert.equal(definition.code, 201);
  const sinceOf = async (type: string): Promise<number> => {
    const { body } = await server.request("GET", `${definitions}/widgets.example.com`);
    const condition = body.status.conditions?.find(
      (one: { type: string; status: string }) => one.type === type && one.status === "True",
    );
    return condition === undefined ? 0 : Date.parse(condition.lastTransitionTime);
  };
  const established = await waitFor(() => sinceOf("Established"), { what: "the definition to be established" });
  // The times are in whole seconds.
  assert.ok(established - (await sinceOf("NamesAccepted")) >= 4_000);
});

test("a server without the groups of roles, priority classes and flow schemas becomes ready", async (t) => {
  const off = [
    "rbac.authorization.k8s.io/v1",
    "scheduling.k8s.io/v1",
    "flowcontrol.apiserver.k8s.io/v1beta1",
    "flowcontrol.apiserver.k8s.io/v1beta2",
  ];
  const flags = [
    "--authorization-mode=AlwaysAllow",
    "--disable-admission-plugins=Priority",
    `--runtime-config=${off.map((one) => `${one}=false`).join()}`,
  ];
  const small = await startTestServer(t, flags);
  for (const one of off) assert.equal((await small.request("GET", `/apis/${one}`)).code, 404, one);
});

test("with priority and fairness, limits that add up to nothing end the start", async (t) => {
  const limits = ["--max-requests-inflight=0", "--max-mutating-requests-inflight=0"];
  const limited = await launchTestServer(t, limits);
  await assert.rejects(
    limited.ready(),
    /MaxRequestsInFlight=0 and MaxMutatingRequestsInFlight=0; they must add up to something positive/,
  );
  const unlimited = await startTestServer(t, [...limits, "--enable-priority-and-fairness=false"]);
  assert.equal((await unlimited.request("GET", "/api/v1/namespaces")).code, 200);
});
