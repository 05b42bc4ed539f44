import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { newFeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import { parseFlags } from "@coxswain/apimachinery/flags/flags";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newServiceAccountKey } from "@coxswain/apimachinery/serving/certificates";
import { startOwnEtcd } from "@coxswain/apimachinery/testing/etcd";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { configFromFlags } from "../config.ts";
import { kubeApiserver } from "../flags.ts";
import { startApiserver } from "../server.ts";
import { newHttp, startTestServer, type TestServer } from "../testing/start-test-server.ts";

let server: TestServer;
before(async () => {
  server = await startTestServer(undefined);
});
after(() => server.stop());

for (const page of ["healthz", "livez", "readyz"]) {
  test(`/${page} is ok, and verbose names every check`, async () => {
    assert.deepEqual((({ code, text }) => ({ code, text }))(await server.request("GET", `/${page}`)), { code: 200, text: "ok" });
    const { text } = await server.request("GET", `/${page}?verbose`);
    for (const check of ["ping", "log", "etcd", "poststarthook/rbac/bootstrap-roles"])
      assert.ok(text.includes(`[+]${check} ok\n`), check);
    assert.ok(text.endsWith(`${page} check passed\n`));
    assert.equal(text.includes("[+]shutdown ok"), page === "readyz");
  });
}

test("a check has a path of its own, the path of an unknown check is 404", async () => {
  assert.equal((await server.request("GET", "/livez/etcd")).text, "ok");
  assert.equal((await server.request("GET", "/readyz/poststarthook/bootstrap-controller")).text, "ok");
  for (const path of ["/livez/nothing", "/livez/", "/readyz/etcd/", "/livez/shutdown", "/livez/informer-sync"]) {
    assert.equal((await server.request("GET", path)).code, 404, path);
  }
});

test("a check is requested by every name that verbose prints, and left out by it", async () => {
  for (const page of ["livez", "readyz", "healthz"]) {
    const names = [...(await server.request("GET", `/${page}?verbose`)).text.matchAll(/^\[\+\](\S+) ok$/gm)].map(
      ([, name]) => name,
    );
    assert.ok(names.length > 8, page);
    for (const name of names) {
      const { code, text } = await server.request("GET", `/${page}/${name}`);
      assert.deepEqual([code, text], [200, "ok"], `/${page}/${name}`);
    }
    const { code, text } = await server.request("GET", `/${page}?verbose&${names.map((name) => `exclude=${name}`).join("&")}`);
    assert.equal(code, 200);
    assert.equal(text, `${names.map((name) => `[+]${name} excluded: ok\n`).join("")}${page} check passed\n`);
    assert.equal((await server.request("GET", `/${page}?exclude=${names[0]}`)).text, "ok");
  }
});

test("an excluded check is reported as excluded, an unknown one with a warning", async () => {
  const { text } = await server.request("GET", "/readyz?verbose&exclude=etcd&exclude=moon");
  assert.ok(text.includes("[+]etcd excluded: ok\n"));
  assert.ok(text.includes('warn: some health checks cannot be excluded: no matches for "moon"\n'));
});

test("exclude takes one name; several are several parameters", async () => {
  const { text } = await server.request("GET", "/livez?verbose&exclude=etcd,ping");
  assert.ok(text.includes("[+]etcd ok\n"));
  assert.ok(text.includes('warn: some health checks cannot be excluded: no matches for "etcd,ping"\n'));
});

test("checks come in upstream's order", async () => {
  const namesOf = async (page: string) =>
    [...(await server.request("GET", `/${page}?verbose`)).text.matchAll(/^\[\+\](\S+) ok$/gm)].map(([, name]) => name);
  const hooks = [
    "poststarthook/start-kube-apiserver-admission-initializer",
    "poststarthook/generic-apiserver-start-informers",
    "poststarthook/priority-and-fairness-config-consumer",
    "poststarthook/priority-and-fairness-filter",
    "poststarthook/start-apiextensions-informers",
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/crd-informer-synced",
    "poststarthook/bootstrap-controller",
    "poststarthook/rbac/bootstrap-roles",
    "poststarthook/scheduling/bootstrap-system-priority-classes",
    "poststarthook/priority-and-fairness-config-producer",
    "poststarthook/start-cluster-authentication-info-controller",
    "poststarthook/start-kube-aggregator-informers",
    "poststarthook/apiservice-registration-controller",
    "poststarthook/apiservice-status-available-controller",
    "poststarthook/kube-apiserver-autoregistration",
    "autoregister-completion",
    "poststarthook/apiservice-openapi-controller",
  ];
  assert.deepEqual(await namesOf("livez"), ["ping", "log", "etcd", ...hooks]);
  assert.deepEqual(await namesOf("healthz"), ["ping", "log", "etcd", ...hooks]);
  assert.deepEqual(await namesOf("readyz"), ["ping", "log", "etcd", "informer-sync", ...hooks, "shutdown"]);
});

test("a server whose etcd is full answers reads and deletions and stays ready; /readyz?verbose says what is wrong", async (t) => {
  const etcd = await startOwnEtcd(t, ["--quota-backend-bytes", String(4 * 1024 * 1024)]);
  const full = await startTestServer(t, [`--etcd-servers=${etcd.endpoint}`]);
  const warning = "[+]etcd ok\nwarn: etcd: no space left, all writes but deletions are refused\n";
  assert.ok(!(await full.request("GET", "/readyz?verbose")).text.includes("warn:"));
  const configMap = (i: number) => ({ metadata: { name: `c${i}` }, data: { text: "x".repeat(900_000) } });
  let made = 0;
  const refused = await waitFor(
    async () => {
      const answer = await full.request("POST", "/api/v1/namespaces/default/configmaps", configMap(made++));
      return answer.code !== 201 && answer;
    },
    { what: "etcd to be full" },
  );
  assert.equal(refused.code, 500);
  assert.match(refused.body.message, /etcdserver: mvcc: database space exceeded/);
  const ready = await full.request("GET", "/readyz?verbose");
  assert.equal(ready.code, 200);
  assert.ok(ready.text.includes(warning), ready.text);
  assert.equal((await full.request("GET", "/readyz")).text, "ok");
  assert.equal((await full.request("GET", "/api/v1/namespaces/default/configmaps/c0")).code, 200);
  assert.equal((await full.request("DELETE", "/api/v1/namespaces/default/configmaps/c0")).code, 200);
});

test("each group version that is served has its APIService", async () => {
  const { body } = await server.request("GET", "/apis/apiregistration.k8s.io/v1/apiservices");
  const names = body.items.map((item: { metadata: { name: string } }) => item.metadata.name);
  assert.ok(names.includes("v1.") && names.includes("v1beta1.batch") && !names.includes("v1.apiregistration.k8s.io"));
  hasFields((await server.request("GET", "/apis/apiregistration.k8s.io/v1/apiservices/v2.autoscaling")).body, {
    metadata: { labels: { "kube-aggregator.kubernetes.io/automanaged": "onstart" } },
    spec: { group: "autoscaling", version: "v2", groupPriorityMinimum: 17500, versionPriority: 30 },
    status: { conditions: [{ type: "Available", status: "True", reason: "Local" }] },
  });
});

test("a server whose modules cannot be connected is never ready: everything else is answered with 503", async (t) => {
  const etcd = await startOwnEtcd(t);
  const certDir = mkdtempSync(join(tmpdir(), "cox-health-"));
  t.after(() => rmSync(certDir, { recursive: true, force: true }));
  const { keyPem, pubPem } = newServiceAccountKey();
  writeFileSync(join(certDir, "sa.key"), keyPem, { mode: 0o600 });
  writeFileSync(join(certDir, "sa.pub"), pubPem);
  const { values } = parseFlags(kubeApiserver.flags, [
    `--etcd-servers=${etcd.endpoint}`,
    "--bind-address=127.0.0.1",
    "--secure-port=6443",
    `--cert-dir=${certDir}`,
    `--service-account-key-file=${certDir}/sa.pub`,
    `--service-account-signing-key-file=${certDir}/sa.key`,
    "--service-account-issuer=https://kubernetes.default.svc",
    "--service-cluster-ip-range=10.0.0.0/24",
    "--enable-admission-plugins=ImagePolicyWebhook", // lacks its configuration
  ]);
  const config = configFromFlags(values);
  const log = discardLogger;
  const featureGates = newFeatureGates(kubeApiserver.name, {});
  const broken = await startApiserver({ ...config, flags: { ...values, "secure-port": 0 } }, { log, featureGates });
  t.after(() => broken.stop(0));
  await assert.rejects(broken.started, /no config specified/);
  const http = newHttp(broken.url, readFileSync(join(certDir, "apiserver.crt"), "utf8"));
  t.after(() => http.close());
  assert.equal((await http.request("GET", "/api")).code, 503);
  const ready = await http.request("GET", "/readyz");
  assert.equal(ready.code, 500);
  assert.ok(ready.text.includes("[-]etcd failed: reason withheld\n"), ready.text);
});
