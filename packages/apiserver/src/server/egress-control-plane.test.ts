/** --egress-selector-config-file: webhooks for authentication, authorization and audit use the selection `controlplane`. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { startConnectProxy, startKonnectivityServer } from "../testing/egress-proxies.ts";
import { refusalByWebhook } from "../testing/refusing-webhook.ts";
import { startTestServer } from "../testing/start-test-server.ts";
import { startTlsPeer } from "../testing/tls-peer.ts";

/** The peer's response, by the kind of the request. */
const answers: Readonly<Record<string, object>> = {
  TokenReview: { status: { authenticated: true, user: { username: "tom" } } },
  SubjectAccessReview: { status: { allowed: true } },
  EventList: {},
};

for (const { proxyProtocol, startProxy } of [
  { proxyProtocol: "HTTPConnect", startProxy: startConnectProxy },
  { proxyProtocol: "GRPC", startProxy: startKonnectivityServer },
]) {
  test(`webhooks of tokens, authorization and audit, and those with a URL, are reached by ${proxyProtocol}`, async (t) => {
    const peer = await startTlsPeer(t, ({ body }) => {
      const { apiVersion, kind, request } = JSON.parse(body);
      const review = { uid: request?.uid, allowed: false, status: { message: "seen" } };
      return { body: { apiVersion, kind, ...(answers[kind] ?? { response: review }) } };
    });
    const peerPort = Number(new URL(peer.url).port);
    const socket = peer.file("x", "").replace(/x$/, "proxy.sock");
    // Nothing listens on these local ports; the proxy maps them.
    const ports = new Map([1, 2, 3, 4].map((port) => [`localhost:${port}`, peerPort]));
    const proxy = await startProxy({ at: socket, portOf: (target) => ports.get(target) });
    t.after(() => proxy.stop());
    const connection = `{proxyProtocol: ${proxyProtocol}, transport: {uds: {udsName: ${socket}}}}`;
    const egress = `kind: EgressSelectorConfiguration\negressSelections: [{name: controlplane, connection: ${connection}}]\n`;
    const kubeconfig = (port: number): string => {
      const text = readFileSync(peer.kubeconfig(), "utf8");
      return peer.file(`${port}.kubeconfig`, text.replace(peer.url, `https://localhost:${port}`));
    };
    const policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n";
    const server = await startTestServer(t, [
      `--egress-selector-config-file=${peer.file("egress.yaml", egress)}`,
      `--authentication-token-webhook-config-file=${kubeconfig(1)}`,
      "--authorization-mode=RBAC,Webhook",
      `--authorization-webhook-config-file=${kubeconfig(2)}`,
      `--audit-policy-file=${peer.file("policy.yaml", policy)}`,
      `--audit-webhook-config-file=${kubeconfig(3)}`,
      "--audit-webhook-batch-max-wait=10ms",
    ]);

    const toms = await server.request("GET", "/api/v1/namespaces", undefined, { authorization: "Bearer somebody" });
    assert.equal(toms.code, 200);
    await waitFor(() => proxy.requested.includes("localhost:3"), { what: "the audit webhook to receive an event" });
    const refusal = await refusalByWebhook(server, "hook", "secrets", {
      url: "https://localhost:4/",
      caBundle: Buffer.from(peer.ca).toString("base64"),
    });
    assert.match(refusal, /admission webhook "hook.example.com" denied the request: seen/);
    assert.deepEqual([...new Set(proxy.requested)].toSorted(), [...ports.keys()]);
    await server.stop();
  });
}
