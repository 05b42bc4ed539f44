import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startOwnEtcd } from "@coxswain/apimachinery/testing/etcd";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { startTestServer, type TestServer } from "../testing/start-test-server.ts";

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

test("a check has its own path, one that is not there does not", async () => {
  assert.equal((await server.request("GET", "/livez/etcd")).text, "ok");
  assert.equal((await server.request("GET", "/readyz/poststarthook/bootstrap-controller")).text, "ok");
  for (const path of ["/livez/nothing", "/livez/", "/readyz/etcd/", "/livez/shutdown", "/livez/informer-sync"]) {
    assert.equal((await server.request("GET", path)).code, 404, path);
  }
});

test("an excluded check is named as such, one that is not there is warned about", async () => {
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
  assert.partialDeepStrictEqual(
    (await server.request("GET", "/apis/apiregistration.k8s.io/v1/apiservices/v2.autoscaling")).body,
    {
      metadata: { labels: { "kube-aggregator.kubernetes.io/automanaged": "onstart" } },
      spec: { group: "autoscaling", version: "v2", groupPriorityMinimum: 17500, versionPriority: 30 },
      status: { conditions: [{ type: "Available", status: "True", reason: "Local" }] },
    },
  );
});
