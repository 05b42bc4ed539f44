/** Exec into a pod whose kubelet redirects to another server: the gates StreamingProxyRedirects and ValidateProxyRedirects. */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { createServer, request } from "node:https";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { type TestContext, test } from "node:test";
import { newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import { startTestServer, type TestServer } from "../testing/start-test-server.ts";

const pods = "/api/v1/namespaces/default/pods";
const upgrade = { connection: "Upgrade", upgrade: "SPDY/3.1" };

/** A kubelet that redirects upgrades to `location`, but accepts the redirected URL itself. @returns its port */
async function aRedirectingKubelet(t: TestContext, location: string): Promise<number> {
  const ca = await newCa({ commonName: "kubelet-ca" });
  const pair = await newCertificate({ commonName: "node", ips: ["127.0.0.1"], usages: ["server"], ca });
  const kubelet = createServer({ cert: pair.certPem, key: pair.keyPem });
  kubelet.on("upgrade", ({ url }: IncomingMessage, socket: Duplex) => {
    if (url === "/cri/exec/token")
      socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n");
    else socket.end(`HTTP/1.1 302 Found\r\nLocation: ${location}\r\nContent-Length: 0\r\n\r\n`);
  });
  kubelet.listen(0, "127.0.0.1");
  await once(kubelet, "listening");
  t.after(() => {
    kubelet.closeAllConnections();
    kubelet.close();
  });
  return (kubelet.address() as AddressInfo).port;
}

async function execInto(server: TestServer): Promise<{ code: number | undefined; text: string }> {
  const client = request(`${server.url}${pods}/web/exec?command=sh`, {
    method: "POST",
    ca: server.ca,
    headers: { ...upgrade, authorization: `Bearer ${server.adminToken}` },
  });
  client.end();
  const answers = [once(client, "upgrade"), once(client, "response")];
  const [answer, socket] = (await Promise.race(answers)) as [IncomingMessage, Duplex | undefined];
  socket?.destroy();
  let text = "";
  if (socket === undefined) for await (const chunk of answer) text += chunk;
  return { code: answer.statusCode, text };
}

for (const { gates, location, code, says } of [
  { gates: "StreamingProxyRedirects=true", location: "/cri/exec/token", code: 101, says: "" },
  {
    gates: "StreamingProxyRedirects=true",
    location: "https://192.0.2.1/cri/exec/token",
    code: 500,
    says: "hostname mismatch: expected 127.0.0.1, found 192.0.2.1",
  },
  {
    gates: "StreamingProxyRedirects=true,ValidateProxyRedirects=false",
    location: "https://127.0.0.2:1/cri/exec/token",
    code: 500,
    says: "dial tcp 127.0.0.2:1: connect: connection refused",
  },
  { gates: "", location: "/cri/exec/token", code: 500, says: "invalid upgrade response: status code 302" },
]) {
  test(`--feature-gates=${gates}: exec where a kubelet redirects to ${location} is ${code}`, async (t) => {
    const port = await aRedirectingKubelet(t, location);
    const server = await startTestServer(t, gates === "" ? [] : [`--feature-gates=${gates}`]);
    await server.request("POST", "/api/v1/nodes", { metadata: { name: "n1" } });
    const addresses = [{ type: "InternalIP", address: "127.0.0.1" }];
    const status = { addresses, daemonEndpoints: { kubeletEndpoint: { Port: port } } };
    const merge = { "content-type": "application/merge-patch+json" };
    await server.request("PATCH", "/api/v1/nodes/n1/status", { status }, merge);
    await server.request("POST", "/api/v1/namespaces/default/serviceaccounts", { metadata: { name: "default" } });
    const spec = { nodeName: "n1", containers: [{ name: "main", image: "busybox" }] };
    await server.request("POST", pods, { metadata: { name: "web" }, spec });
    const answer = await execInto(server);
    assert.equal(answer.code, code, answer.text);
    assert.ok(answer.text.includes(says), answer.text);
  });
}
