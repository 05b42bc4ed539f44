import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { test } from "node:test";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { newBackends, send } from "./backends.ts";

async function tunnel(host: string, port: number): Promise<Socket> {
  const socket = connect(port, host);
  await once(socket, "connect");
  return socket;
}

for (const { name, tunnel: dialer } of [
  { name: "directly", tunnel: undefined },
  { name: "over a tunnel", tunnel },
]) {
  test(`a server that never speaks TLS is given up after 30 s, queried ${name}`, async (t) => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    t.after(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const spec = { groupPriorityMinimum: 1, versionPriority: 1, service: { namespace: "a", name: "b", port } };
    const backend = newBackends({ current: undefined }, dialer).of({ metadata: { name: "v1.example.com" }, spec });
    assert.ok(backend);
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const connected = once(server, "connection");
    const { signal } = new AbortController();
    const requested = send(backend, { host: "127.0.0.1", port }, { method: "GET", path: "/apis", headers: {}, signal });
    const refused = assert.rejects(requested, { message: `dial tcp 127.0.0.1:${port}: i/o timeout` });
    const [socket] = (await connected) as [Socket];
    socket.on("error", () => {});
    await once(socket, "data");
    await settle();
    t.mock.timers.tick(30_000);
    await refused;
    t.mock.timers.reset();
    if (!socket.closed) await once(socket, "close");
  });
}

test("a backend is kept while its APIService and the certificate are the same, and made anew when one of them changes", () => {
  const certificate = { current: undefined as { cert: string; key: string } | undefined };
  const backends = newBackends(certificate);
  const service = { namespace: "a", name: "b", port: 443 };
  const of = (changes: object = {}, name = "v1.example.com") =>
    backends.of({ metadata: { name }, spec: { groupPriorityMinimum: 1, versionPriority: 1, service, ...changes } });
  const first = of();
  assert.equal(of({ versionPriority: 2 }), first);
  assert.notEqual(of({}, "v2.example.com"), first);
  let last = first;
  for (const changes of [
    { service: { ...service, namespace: "c" } },
    { service: { ...service, name: "c" } },
    { service: { ...service, port: 8443 } },
    { insecureSkipTLSVerify: true },
    { caBundle: Buffer.from("no certificate").toString("base64") },
    {},
  ]) {
    const next = of(changes);
    assert.notEqual(next, last, JSON.stringify(changes));
    assert.equal(of(changes), next);
    last = next;
  }
  assert.match(
    of({ caBundle: Buffer.from("no certificate").toString("base64") })?.problem ?? "",
    /unable to load root certificates/,
  );
  last = of();
  certificate.current = { cert: "", key: "" };
  assert.notEqual(of(), last);
  last = of();
  backends.forget("v1.example.com");
  assert.notEqual(of(), last);
  assert.equal(of({ service: undefined }), undefined);
});
