/** An API server with a configured front proxy, and aggregated servers for it, for tests. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { type AggregatedServer, startAggregatedServer } from "./aggregated-server.ts";
import { startTestServer, type TestServer } from "./start-test-server.ts";

export const apiServices = "/apis/apiregistration.k8s.io/v1/apiservices";

export interface Aggregation {
  readonly server: TestServer;
  /** CA of the front proxy's certificate, PEM. */
  readonly proxyCa: string;
  /** Replaces the files of --proxy-client-cert-file and --proxy-client-key-file with a new pair. */
  writeProxyPair(commonName: string): Promise<void>;
  /** Sends a POST and asserts success. */
  made(path: string, object: object): Promise<void>;
  makeService(name: string, clusterIP: string, port: number): Promise<void>;
  makeEndpoints(name: string): Promise<void>;
  /** Creates an APIService for a service in `default`. */
  register(group: string, service: string, at: Pick<AggregatedServer, "caBundle" | "port">, spec?: object): Promise<void>;
  /** Waits until the condition Available has this reason. */
  whenReason(group: string, reason: string): Promise<{ status: string; message: string }>;
  /** Starts a server with service, endpoint and APIService, and waits until it is available; removed after the test. */
  aggregated(t: TestContext, group: string, spec?: Record<string, unknown>): Promise<AggregatedServer>;
  stop(): Promise<void>;
}

/** Cluster IPs are loopback addresses, so that no routing is needed. */
export async function startAggregation(flags: readonly string[] = []): Promise<Aggregation> {
  const proxyCa = await newCa({ commonName: "front proxies" });
  const folder = mkdtempSync(join(tmpdir(), "cox-aggregation-"));
  const file = (name: string): string => join(folder, name);
  const writeProxyPair = async (commonName: string): Promise<void> => {
    const pair = await newCertificate({ commonName, usages: ["client"], ca: proxyCa });
    writeFileSync(file("proxy.key"), pair.keyPem, { mode: 0o600 });
    writeFileSync(file("proxy.crt"), pair.certPem);
  };
  await writeProxyPair("front-proxy-client");
  const server = await startTestServer(undefined, [
    "--service-cluster-ip-range=127.0.10.0/24",
    `--proxy-client-cert-file=${file("proxy.crt")}`,
    `--proxy-client-key-file=${file("proxy.key")}`,
    ...flags,
  ]);
  let addresses = 20;
  const setup: Aggregation = {
    server,
    proxyCa: proxyCa.certPem,
    writeProxyPair,
    async made(path, object) {
      const { code, text } = await server.request("POST", path, object);
      assert.equal(code, 201, text);
    },
    makeService: (name, clusterIP, port) =>
      setup.made("/api/v1/namespaces/default/services", { metadata: { name }, spec: { clusterIP, ports: [{ port }] } }),
    makeEndpoints: (name) =>
      setup.made("/api/v1/namespaces/default/endpoints", {
        metadata: { name },
        subsets: [{ addresses: [{ ip: "192.0.2.1" }], ports: [{ port: 443 }] }],
      }),
    register: (group, service, { caBundle, port }, spec = {}) =>
      setup.made(apiServices, {
        metadata: { name: `v1.${group}` },
        spec: {
          group,
          version: "v1",
          groupPriorityMinimum: 2000,
          versionPriority: 10,
          service: { namespace: "default", name: service, port },
          caBundle,
          ...spec,
        },
      }),
    whenReason: (group, reason) =>
      waitFor(
        async () => {
          const { body } = await server.request("GET", `${apiServices}/v1.${group}`);
          const condition = body.status?.conditions?.find(({ type }: { type: string }) => type === "Available");
          return condition?.reason === reason && condition;
        },
        { what: `${group} to be ${reason}` },
      ),
    async aggregated(t, group, spec = {}) {
      const address = `127.0.10.${addresses++}`;
      const name = group.replaceAll(".", "-");
      const other = await startAggregatedServer(t, { group, address, names: [`${name}.default.svc`], proxyCa: proxyCa.certPem });
      await setup.makeService(name, address, other.port);
      await setup.makeEndpoints(name);
      await setup.register(group, name, other, spec);
      await setup.whenReason(group, "Passed");
      t.after(async () => {
        await server.request("DELETE", `${apiServices}/v1.${group}`);
        await server.request("DELETE", `/api/v1/namespaces/default/services/${name}`);
      });
      return other;
    },
    async stop() {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
  return setup;
}
