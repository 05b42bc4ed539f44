import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import { endpointSlices } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { listening } from "@coxswain/apimachinery/testing/listening";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import type { PartContext } from "../part.ts";
import { startApiProxy } from "./part.ts";

test("at the start the servers of the list are used in a random order, also at IPv6 addresses", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "cox-api-proxy-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "api-servers");
  const server = createServer((socket) => void socket.on("error", () => {}));
  server.listen(0, "::1");
  await once(server, "listening");
  t.after(() => void server.close());
  const { port } = server.address() as AddressInfo;
  writeFileSync(file, `[::1]:${port}\n127.0.0.1:1\n127.0.0.2:1\n`);
  const keys = [0.9, 0.1, 0.5];
  t.mock.method(Math, "random", () => keys.shift() ?? 0);
  const clock = newFakeClock();
  const informers = newInformerFactory(newFakeClient({ clock }), { clock, log: discardLogger });
  const used: string[] = [];
  const info = (_: string, { servers = "" }: { servers?: string }): void => void used.push(servers);
  const log = Object.assign(Object.create(discardLogger), { info }) as typeof discardLogger; // cast: with its own info
  const part = await startApiProxy({
    ...{ nodeName: "n1", informers, clock, log, metrics: newMetricsRegistry(), signal: new AbortController().signal },
    flags: { kubeconfig: "", master: "https://127.0.0.1:1", "api-proxy-port": 0, "api-proxy-servers-file": file },
  } as unknown as PartContext); // cast: a context with what this part takes
  t.after(() => part.stop?.());
  assert.deepEqual(used, [`127.0.0.1:1,127.0.0.2:1,[::1]:${port}`]);
  await once(server, "connection");
  await part.check?.();
});

test("the list is kept as the Service kubernetes is; without endpoints, and by other Services, it is not changed", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "cox-api-proxy-"));
  t.after(() => rmSync(folder, { recursive: true }));
  // Accepts connections and answers nothing: no server is known to work, or not to.
  const port = await listening(
    t,
    createServer((socket) => void socket.on("error", () => {})),
  );
  const slice = (name: string, service: string, namespace: string, ...addresses: string[]): EndpointSlice => ({
    metadata: { namespace, name, labels: { "kubernetes.io/service-name": service } },
    addressType: "IPv4",
    endpoints: addresses.map((address) => ({ addresses: [address] })),
    ports: [
      { name: "metrics", port: 1, protocol: "TCP" },
      { name: "https", port, protocol: "TCP" },
    ],
  });
  const file = join(folder, "api-servers");
  writeFileSync(file, `127.0.0.1:${port}\n`);
  const clock = newFakeClock();
  const client = newFakeClient({ clock });
  const informers = newInformerFactory(client, { clock, log: discardLogger });
  const ending = new AbortController();
  t.after(() => ending.abort());
  const context = {
    ...{ nodeName: "n1", client, informers, clock, log: discardLogger, metrics: newMetricsRegistry(), signal: ending.signal },
    flags: { kubeconfig: "", master: "https://127.0.0.1:1", "api-proxy-port": 0, "api-proxy-servers-file": file },
  } as unknown as PartContext;
  informers.start(ending.signal);
  const part = await startApiProxy(context);
  t.after(() => part.stop?.());
  const listed = async (): Promise<string[]> => {
    await settle(5);
    return readFileSync(file, "utf8").trim().split("\n");
  };
  const at = (...hosts: number[]): string[] => hosts.map((host) => `127.0.0.${host}:${port}`);
  await settle(5);
  await part.check?.();
  client.put(endpointSlices, slice("kubernetes", "kubernetes", "default", "127.0.0.2", "127.0.0.1"));
  assert.deepEqual(await listed(), at(1, 2));
  client.put(endpointSlices, slice("second", "kubernetes", "default", "127.0.0.3"));
  client.put(endpointSlices, slice("other", "web", "default", "127.0.0.8"), slice("foreign", "kubernetes", "other", "127.0.0.9"));
  assert.deepEqual(await listed(), at(1, 2, 3));
  client.remove(endpointSlices, "default/second");
  assert.deepEqual(await listed(), at(1, 2));
  const { ino } = statSync(file);
  client.put(endpointSlices, slice("kubernetes", "kubernetes", "default", "127.0.0.1", "127.0.0.2"));
  assert.deepEqual([await listed(), statSync(file).ino], [at(1, 2), ino], "the same servers are not written again");
  client.put(endpointSlices, slice("kubernetes", "kubernetes", "default"));
  assert.deepEqual(await listed(), at(1, 2), "the last known ones may come back");

  mkdirSync(`${file}.new`);
  client.put(endpointSlices, slice("kubernetes", "kubernetes", "default", "127.0.0.1"));
  assert.deepEqual(await listed(), at(1, 2));
  assert.throws(() => void part.check?.(), /^Error: cannot update the list of API servers: /);
  rmSync(`${file}.new`, { recursive: true });
  client.put(endpointSlices, slice("kubernetes", "kubernetes", "default", "127.0.0.1"));
  assert.deepEqual(await listed(), at(1), "tried again at the next change");
  await part.check?.();
});
