import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { askDaemon, runDaemon, temporaryFolder, writeKubeconfig } from "@coxswain/apimachinery/testing/daemon-process";
import { freePort } from "@coxswain/apimachinery/testing/etcd";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { startJsonServer } from "./testing/json-server.ts";

const main = join(import.meta.dirname, "main.ts");
const pem = "-----BEGIN CERTIFICATE-----\nof the kubeconfig\n-----END CERTIFICATE-----\n";
const allowed = "--authorization-always-allow-paths=/healthz,/healthz/*,/configz,/metrics";

interface Stored {
  metadata: { name: string; resourceVersion?: string };
  spec: Record<string, unknown>;
  data?: Record<string, string>;
}

test("as the leader it publishes the CA of its kubeconfig and reports its health; without its lease it fails", async (t) => {
  let lease: Stored | undefined;
  let published: Stored | undefined;
  const watched = new Set<string>();
  const missing = { kind: "Status", status: "Failure", reason: "NotFound", message: "none", code: 404, metadata: {} };
  const namespace = { metadata: { name: "web", uid: "u", resourceVersion: "1" }, status: { phase: "Active" } };
  let version = 1;
  const host = await startJsonServer(
    t,
    ({ method, url, body, send }) => {
      if (url.pathname.includes("/leases")) {
        if (method === "GET") return send(lease === undefined ? 404 : 200, lease ?? missing);
        if (lease?.spec["holderIdentity"] === "another") return send(409, { ...missing, reason: "Conflict", code: 409 });
        lease = { ...body, metadata: { ...body.metadata, resourceVersion: `${++version}` } };
        return send(200, lease ?? {});
      }
      if (url.pathname.endsWith("/configmaps") && method === "POST") published = body;
      if (method !== "GET") return send(201, body);
      send(200, { metadata: { resourceVersion: "1" }, items: url.pathname === "/api/v1/namespaces" ? [namespace] : [] });
    },
    { onWatch: ({ pathname }) => watched.add(pathname) },
  );
  const folder = await temporaryFolder(t);
  const kubeconfig = await writeKubeconfig(folder, host, Buffer.from(pem).toString("base64"));
  const port = await freePort();
  const serving = [`--secure-port=${port}`, `--cert-dir=${folder}`, allowed, "--kube-api-content-type=application/json"];
  const election = ["--leader-elect-lease-duration=4s", "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=500ms"];
  const which = "--controllers=root-ca-cert-publisher,ttl";
  const { ended } = runDaemon(t, main, `--kubeconfig=${kubeconfig}`, ...serving, ...election, which);
  await waitFor(() => published !== undefined, { what: "the CA to be published" });
  assert.deepEqual(published?.data, { "ca.crt": pem });
  assert.match(String(lease?.spec["holderIdentity"]), /^.+_[0-9a-f-]{36}$/);
  assert.ok(
    [...watched].some((path) => path.endsWith("/questions")),
    [...watched].join(),
  );

  const page = (await askDaemon(port, "/healthz?verbose")) ?? "";
  const names = [...page.matchAll(/^\[\+\](\S+) /gm)].map(([, name]) => name);
  assert.deepEqual(names.toSorted(), ["leaderElection", "root-ca-cert-publisher", "ttl"], page);
  const configz = JSON.parse((await askDaemon(port, "/configz")) ?? "{}");
  assert.deepEqual(Object.keys(configz), ["kubecontrollermanager.config.k8s.io"]);
  assert.match((await askDaemon(port, "/metrics")) ?? "", /^leader_election_master_status\{name="kube-controller-manager"\} 1$/m);

  lease = { ...lease, metadata: { name: "kube-controller-manager", resourceVersion: "99" }, spec: { holderIdentity: "another" } };
  const { code, said } = await ended;
  assert.notEqual(code, 0);
  assert.match(said, /leaderelection lost/);
});
