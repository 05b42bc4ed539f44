import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { asyncRequestListener } from "@coxswain/apimachinery/testing/async-listener";
import { askDaemon, runDaemon, temporaryFolder, writeKubeconfig } from "@coxswain/apimachinery/testing/daemon-process";
import { freePort } from "@coxswain/apimachinery/testing/etcd";
import { listening } from "@coxswain/apimachinery/testing/listening";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";

const main = join(import.meta.dirname, "main.ts");

test("--write-config-to writes the configuration and ends, without a server", async (t) => {
  const folder = await temporaryFolder(t);
  const written = join(folder, "written.yaml");
  const kubeconfig = await writeKubeconfig(folder, "https://127.0.0.1:1");
  const { code } = await runDaemon(t, main, `--kubeconfig=${kubeconfig}`, `--write-config-to=${written}`).ended;
  assert.equal(code, 0);
  assert.match(await readFile(written, "utf8"), /^kind: KubeSchedulerConfiguration$/m);
});

for (const { name, config, flags = [], want } of [
  {
    name: "durations of leader election that do not fit each other",
    flags: ["--leader-elect-lease-duration=10s"],
    want: /couldn't create leader elector: leaseDuration must be greater than renewDeadline/,
  },
  {
    name: "an unknown plugin",
    config: "profiles: [{plugins: {filter: {enabled: [{name: Unknown}]}}}]",
    want: /couldn't create scheduler: initializing profiles: .*FilterPlugin "Unknown" does not exist/,
  },
  {
    name: "an unknown kind of lock",
    flags: ["--leader-elect-resource-lock=secrets"],
    want: /couldn't create resource lock: Invalid lock-type secrets/,
  },
] as { name: string; config?: string; flags?: string[]; want: RegExp }[]) {
  test(`${name}: it says so and fails`, async (t) => {
    const folder = await temporaryFolder(t);
    const kubeconfig = await writeKubeconfig(folder, "https://127.0.0.1:1");
    const file = join(folder, "config.yaml");
    const head = `apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n`;
    if (config !== undefined) await writeFile(file, `${head}clientConnection: {kubeconfig: ${kubeconfig}}\n${config}\n`);
    const given = config === undefined ? [`--kubeconfig=${kubeconfig}`, ...flags] : [`--config=${file}`];
    const { code, said } = await runDaemon(t, main, ...given, "--secure-port=0").ended;
    assert.equal(code, 1);
    assert.match(said, want);
  });
}

interface Lease {
  metadata: { resourceVersion?: string };
  spec: { holderIdentity?: string };
}

/** A scheduler beside an API server with one pod. Its lease is the one of `api`. */
async function beside(t: TestContext, holder: string | undefined, ...more: string[]) {
  const held = (name: string): Lease => ({ metadata: { resourceVersion: name }, spec: { holderIdentity: name } });
  const api = {
    requested: [] as string[],
    agents: new Set<string>(),
    sources: new Set<string>(),
    lease: holder === undefined ? undefined : held(holder),
    /** Makes another instance the holder of the lease for good. */
    take(): void {
      api.lease = held("another");
      isTaken = true;
    },
  };
  let isTaken = false;
  const pod = {
    metadata: { name: "web", namespace: "default", uid: "web", resourceVersion: "1" },
    spec: { nodeName: "a", containers: [{ name: "c", image: "i", resources: { requests: { cpu: "250m" } } }] },
  };
  const failure = (reason: string, code: number) => ({ kind: "Status", status: "Failure", reason, message: "none", code });
  const server = createServer(
    asyncRequestListener(async (request, response) => {
      const { method = "", url = "", headers } = request;
      const answer = (body: object, status = 200): void => {
        response.writeHead(status, { "content-type": "application/json" });
        response.end(JSON.stringify(body));
      };
      api.requested.push(`${method} ${url.split("?")[0]}`);
      if (url.includes("/leases")) api.agents.add(headers["user-agent"] ?? "");
      if (url.includes("watch=true")) return void response.writeHead(200).flushHeaders();
      if (method !== "GET") {
        const body = JSON.parse(await text(request));
        if (url.includes("/events")) api.sources.add(body.source?.component);
        if (!url.includes("/leases")) return answer(body);
        if (isTaken) return answer(failure("Conflict", 409), 409);
        api.lease = { ...body, metadata: { ...body.metadata, resourceVersion: String(api.requested.length) } };
        return answer(api.lease ?? {});
      }
      const items = url.startsWith("/api/v1/pods?") ? [pod] : [];
      if (!url.includes("/leases")) return answer({ metadata: { resourceVersion: "1" }, items });
      return api.lease === undefined ? answer(failure("NotFound", 404), 404) : answer(api.lease);
    }),
  );
  const folder = await temporaryFolder(t);
  const kubeconfig = await writeKubeconfig(folder, `http://127.0.0.1:${await listening(t, server)}`);
  const port = await freePort();
  const allowed = "--authorization-always-allow-paths=/metrics/resources,/debug/*";
  const flags = ["--kube-api-content-type=application/json", `--secure-port=${port}`, `--cert-dir=${folder}`, allowed];
  const daemon = runDaemon(t, main, `--kubeconfig=${kubeconfig}`, ...flags, ...more);
  return { ...daemon, api, ask: (path: string) => askDaemon(port, path) };
}

test("it reads the cluster and reports its resources when it leads, and releases its lease when it is stopped", async (t) => {
  const { child, ended, api, ask } = await beside(t, "another", "--leader-elect-resource-name=mine", "--profiling=false");
  const ofMine = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/mine";
  await waitFor(() => api.requested.includes(`GET ${ofMine}`), { what: "the lease to be read" });
  assert.equal(await ask("/metrics/resources"), "", "another instance leads");
  assert.match((await ask("/debug/pprof/")) ?? "", /^404 /);
  api.lease = undefined;
  await waitFor(() => api.requested.includes("GET /api/v1/pods"), { what: "the pods to be listed" });
  const others = api.requested.filter((request) => request !== `GET ${ofMine}`);
  assert.deepEqual(others.slice(0, 2), ["GET /readyz", "POST /apis/coordination.k8s.io/v1/namespaces/kube-system/leases"]);
  const holder = (): string | undefined => (api.lease as Lease | undefined)?.spec.holderIdentity;
  assert.match(holder() ?? "", /^.+_[0-9a-f-]{36}$/);
  assert.match([...api.agents].join(), /^kube-scheduler\/v1\.23\.\d+ [^,]*\/leader-election$/);
  const isReported = /^kube_pod_resource_request\{.*pod="web".*\} 0\.25$/m;
  await waitFor(async () => isReported.test((await ask("/metrics/resources")) ?? ""), { what: "the resources of the pod" });
  await waitFor(() => api.sources.has("default-scheduler"), { what: "the event of the election" });
  child.kill("SIGTERM");
  const { code, said } = await ended;
  assert.equal(code, 0, said);
  assert.equal(holder(), "");
});

test("without its lease it ends, so that no stale cache is used", async (t) => {
  const durations = ["--leader-elect-lease-duration=4s", "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=500ms"];
  const { ended, api } = await beside(t, undefined, ...durations);
  await waitFor(() => api.requested.includes("GET /api/v1/pods"), { what: "the pods to be listed" });
  api.take();
  const { code, said } = await ended;
  assert.equal(code, 1);
  assert.match(said, /Leaderelection lost/);
});
