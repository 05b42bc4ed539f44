/** --proxy-client-cert-file and --enable-aggregator-routing: the server's identity on outgoing connections, and their target. */
import assert from "node:assert/strict";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { networkInterfaces } from "node:os";
import { after, before, type TestContext, test } from "node:test";
import type { TLSSocket } from "node:tls";
import { newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import { asyncRequestListener } from "@coxswain/apimachinery/testing/async-listener";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { startAggregatedServer } from "../testing/aggregated-server.ts";
import { type Aggregation, startAggregation } from "../testing/start-aggregation.ts";

/** Endpoints must not have loopback addresses. */
const ownAddress = Object.values(networkInterfaces())
  .flat()
  .find((address) => address?.internal === false && address.family === "IPv4")?.address;

let setup: Aggregation;
before(async () => {
  setup = await startAggregation(["--enable-aggregator-routing"]);
});
after(() => setup.stop());

/** A service with an unreachable cluster IP and one endpoint. */
async function serviceAt(name: string, ip: string, port: number): Promise<void> {
  await setup.made("/api/v1/namespaces/default/services", { metadata: { name }, spec: { ports: [{ port: 443 }] } });
  const subsets = [{ addresses: [{ ip }], ports: [{ port }] }];
  await setup.made("/api/v1/namespaces/default/endpoints", { metadata: { name }, subsets });
}

/** An admission webhook that allows all requests. @returns the common names of the client certificates it received */
async function startHook(t: TestContext, address: string, dnsName: string) {
  const ca = await newCa({ commonName: "hooks" });
  const pair = await newCertificate({ commonName: "hook", dnsNames: [dnsName], ips: [address], usages: ["server"], ca });
  const shown: string[] = [];
  const hook = createServer(
    { cert: pair.certPem, key: pair.keyPem, ca: setup.proxyCa, requestCert: true, rejectUnauthorized: false },
    asyncRequestListener(async (req, res) => {
      const socket = req.socket as TLSSocket;
      shown.push(socket.authorized ? String(socket.getPeerCertificate().subject?.CN) : "");
      const chunks: Buffer[] = [];
      for await (const chunk of req) chunks.push(chunk as Buffer);
      const { apiVersion, kind, request } = JSON.parse(Buffer.concat(chunks).toString());
      res.end(JSON.stringify({ apiVersion, kind, response: { uid: request.uid, allowed: true } }));
    }),
  );
  await new Promise<void>((resolve) => hook.listen(0, address, resolve));
  t.after(() => {
    hook.close();
    hook.closeAllConnections();
  });
  return { port: (hook.address() as AddressInfo).port, shown, caBundle: Buffer.from(ca.certPem).toString("base64") };
}

async function registerHook(t: TestContext, name: string, clientConfig: object): Promise<void> {
  const path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
  await setup.made(path, {
    metadata: { name },
    webhooks: [
      {
        name: `${name}.example.com`,
        clientConfig,
        rules: [{ apiGroups: [""], apiVersions: ["v1"], resources: ["configmaps"], operations: ["CREATE"] }],
        objectSelector: { matchLabels: { hook: name } },
        sideEffects: "None",
        admissionReviewVersions: ["v1"],
      },
    ],
  });
  t.after(() => setup.server.request("DELETE", `${path}/${name}`));
}

/** Creates objects until the webhook was called with a certificate. */
async function requested(name: string, shown: readonly string[]): Promise<void> {
  let count = 0;
  await waitFor(
    async () => {
      const metadata = { name: `${name}-${count++}`, labels: { hook: name } };
      const { code, text } = await setup.server.request("POST", "/api/v1/namespaces/default/configmaps", { metadata });
      assert.equal(code, 201, text);
      return shown.length > 0;
    },
    { what: "the webhook to be called" },
  );
}

test("a webhook that no user is configured for is shown the proxy's certificate", async (t) => {
  const { port, shown, caBundle } = await startHook(t, "127.0.0.1", "localhost");
  await registerHook(t, "by-url", { url: `https://127.0.0.1:${port}/`, caBundle });
  await requested("by-url", shown);
  assert.equal(shown[0], "front-proxy-client");
});

test("with --enable-aggregator-routing an aggregated server is reached at its endpoint", {
  skip: ownAddress === undefined && "this machine has no address besides loopback",
}, async (t) => {
  const group = "routed.example.com";
  const address = ownAddress as string;
  const other = await startAggregatedServer(t, { group, address, names: ["routed.default.svc"], proxyCa: setup.proxyCa });
  await serviceAt("routed", address, other.port);
  await setup.made("/apis/apiregistration.k8s.io/v1/apiservices", {
    metadata: { name: `v1.${group}` },
    spec: {
      group,
      version: "v1",
      groupPriorityMinimum: 1000,
      versionPriority: 10,
      service: { namespace: "default", name: "routed" },
      caBundle: other.caBundle,
    },
  });
  const { body } = await waitFor(async () => {
    const answer = await setup.server.request("GET", `/apis/${group}/v1/headers`);
    return answer.code === 200 && answer;
  });
  assert.equal(body.host, `${address}:${other.port}`);
  assert.equal(other.requests.at(-1)?.certificate, "front-proxy-client");
});

test("with --enable-aggregator-routing a webhook is reached at its endpoint", {
  skip: ownAddress === undefined && "this machine has no address besides loopback",
}, async (t) => {
  const { port, shown, caBundle } = await startHook(t, ownAddress as string, "hook.default.svc");
  await serviceAt("hook", ownAddress as string, port);
  await registerHook(t, "by-service", { service: { namespace: "default", name: "hook" }, caBundle });
  await requested("by-service", shown);
  assert.equal(shown[0], "front-proxy-client");
});
