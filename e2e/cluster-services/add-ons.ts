import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Client, newClient } from "@coxswain/apimachinery/client/client";
import { type InformerFactory, newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import { Reconnection } from "@coxswain/apimachinery/informers/reconnection";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import { silentRecorder } from "@coxswain/apimachinery/testing/silent-recorder";
import { startTestServer, type TestServer } from "@coxswain/apiserver/testing/start-test-server";
import { applyRights } from "@coxswain/cluster-services/apply-rights";
import { parts } from "@coxswain/cluster-services/parts";
import { rightsOf } from "@coxswain/cluster-services/rights";
import { findKubectl } from "@coxswain/dev-cluster/kubectl";
import { settings } from "../framework/kubectl.ts";

export interface AddOns {
  readonly server: TestServer;
  /** With the rights of coxswain-services and no others. */
  readonly client: Client;
  readonly informers: InformerFactory;
  readonly reconnection: Reconnection;
  readonly signal: AbortSignal;
  readonly log: typeof discardLogger;
  readonly clock: typeof realClock;
  readonly recorder: typeof silentRecorder;
  readonly metrics: ReturnType<typeof newMetricsRegistry>;
  kubectl(...args: string[]): Promise<string>;
  create(ref: ResourceRef, ...objects: object[]): Promise<void>;
}

interface Context {
  after(fn: () => void | Promise<void>): void;
}

/** A separate API server, with the rights of all parts, and what a part is given. Cluster IPs are loopback addresses. */
export async function startAddOns(t: Context): Promise<AddOns> {
  const folder = mkdtempSync(join(tmpdir(), "cox-add-ons-"));
  const file = (name: string): string => join(folder, name);
  const proxyCa = await newCa({ commonName: "front proxies" });
  const proxy = await newCertificate({ commonName: "front-proxy-client", usages: ["client"], ca: proxyCa });
  writeFileSync(file("proxy-ca.crt"), proxyCa.certPem);
  writeFileSync(file("proxy.crt"), proxy.certPem);
  writeFileSync(file("proxy.key"), proxy.keyPem, { mode: 0o600 });
  const server = await startTestServer(undefined, [
    "--service-cluster-ip-range=127.0.10.0/24",
    "--disable-admission-plugins=ServiceAccount",
    `--proxy-client-cert-file=${file("proxy.crt")}`,
    `--proxy-client-key-file=${file("proxy.key")}`,
    `--requestheader-client-ca-file=${file("proxy-ca.crt")}`,
    "--requestheader-allowed-names=front-proxy-client",
    "--requestheader-username-headers=X-Remote-User",
    "--requestheader-group-headers=X-Remote-Group",
    "--requestheader-extra-headers-prefix=X-Remote-Extra-",
  ]);
  const ending = new AbortController();
  t.after(async () => {
    ending.abort();
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  const create = async (ref: ResourceRef, ...objects: object[]): Promise<void> => {
    for (const object of objects) await server.client.create(ref, object);
  };
  const rights = rightsOf(parts, { leaseNamespace: "kube-system", leaseName: "coxswain-services" });
  await applyRights(server.client, rights, ending.signal);
  const pair = await server.clientCertificate("system:coxswain-services:n1", ["system:coxswain-services"]);
  const config = { host: server.url, ca: server.ca, cert: pair.cert, key: pair.key, qps: -1 };
  const client = newClient(config);
  const [clock, log] = [realClock, discardLogger];
  const informers = newInformerFactory(newClient(config), { log, clock });
  informers.start(ending.signal);
  writeFileSync(file("ca.crt"), server.ca);
  const program = await findKubectl(settings);
  const own = [`--server=${server.url}`, `--certificate-authority=${file("ca.crt")}`, `--token=${server.adminToken}`];
  return {
    server,
    client,
    informers,
    reconnection: new Reconnection({ periodMs: () => 500, clock }),
    signal: ending.signal,
    ...{ log, clock, recorder: silentRecorder, metrics: newMetricsRegistry(), create },
    async kubectl(...args) {
      const env = { PATH: process.env["PATH"], HOME: folder };
      return (await promisify(execFile)(program, [...own, ...args], { env })).stdout;
    },
  };
}
