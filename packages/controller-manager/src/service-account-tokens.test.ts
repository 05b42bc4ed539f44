import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { realClock } from "@coxswain/apimachinery/clock/clock";
import { newFeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import { parseFlags } from "@coxswain/apimachinery/flags/flags";
import { discardLogger } from "@coxswain/apimachinery/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/metrics/registry";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { completeConfig } from "./config.ts";
import { kubeControllerManager } from "./flags.ts";
import { runManager } from "./manager.ts";

/**
 * As much of an API server as a manager needs to find one namespace and nothing in it. Tokens are named after their
 * account, which does not exist until somebody makes it.
 */
async function startApi(t: TestContext): Promise<{ host: string; writes: Map<string, string> }> {
  const accounts = new Set<string>();
  /** What was written in the namespace → whose credential. */
  const writes = new Map<string, string>();
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = chunks.length === 0 ? undefined : JSON.parse(Buffer.concat(chunks).toString("utf8"));
    const url = new URL(request.url ?? "", "http://x");
    const who = request.headers.authorization ?? "";
    const send = (code: number, value: object): void => {
      response.writeHead(code, { "content-type": "application/json" }).end(JSON.stringify(value));
    };
    const own = /^\/api\/v1\/namespaces\/kube-system\/serviceaccounts(?:\/([^/]+)\/token)?$/.exec(url.pathname);
    if (request.method === "POST" && own !== null) {
      if (own[1] === undefined) {
        accounts.add(body.metadata.name);
        return send(201, body);
      }
      const missing = {
        kind: "Status",
        apiVersion: "v1",
        status: "Failure",
        reason: "NotFound",
        code: 404,
        message: "not found",
      };
      if (!accounts.has(own[1])) return send(404, missing);
      const expirationTimestamp = new Date(Date.now() + 3_600_000).toISOString();
      return send(201, { ...body, status: { token: `token-of-${own[1]}`, expirationTimestamp } });
    }
    if (request.method === "POST") {
      writes.set(`${url.pathname} ${body.metadata?.name}`, who);
      return send(201, body);
    }
    if (url.searchParams.has("watch")) return void response.writeHead(200, { "content-type": "application/json" }).flushHeaders();
    const namespace = { metadata: { name: "web", uid: "u", resourceVersion: "1" }, status: { phase: "Active" } };
    send(200, { metadata: { resourceVersion: "1" }, items: url.pathname === "/api/v1/namespaces" ? [namespace] : [] });
  };
  const server = createServer((request, response) => void answer(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return { host: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, writes };
}

async function whoWrites(t: TestContext, ...flags: string[]): Promise<Record<string, string | undefined>> {
  const { host, writes } = await startApi(t);
  const argv = ["--controllers=serviceaccount,root-ca-cert-publisher", "--leader-elect=false", "--controller-start-interval=0"];
  const config = completeConfig(parseFlags(kubeControllerManager.flags, [...argv, ...flags]).values);
  const ending = new AbortController();
  const running = runManager({
    config: { ...config, rootCa: "PEM" },
    clientConfig: { host, token: "manager" },
    log: discardLogger,
    clock: realClock,
    metrics: newMetricsRegistry({}),
    featureGates: newFeatureGates("kube-controller-manager", {}),
    signal: ending.signal,
  });
  const account = "/api/v1/namespaces/web/serviceaccounts default";
  const bundle = "/api/v1/namespaces/web/configmaps kube-root-ca.crt";
  await waitFor(() => writes.has(account) && writes.has(bundle), { what: "the writes of both controllers" });
  ending.abort();
  await running;
  return { account: writes.get(account), bundle: writes.get(bundle) };
}

test("with --use-service-account-credentials each controller writes as its own account, made where it is missing", async (t) => {
  assert.deepEqual(await whoWrites(t, "--use-service-account-credentials"), {
    account: "Bearer token-of-service-account-controller",
    bundle: "Bearer token-of-root-ca-cert-publisher",
  });
});

test("without it all controllers write as the manager", async (t) => {
  assert.deepEqual(await whoWrites(t), { account: "Bearer manager", bundle: "Bearer manager" });
});
