import assert from "node:assert/strict";
import { createServer } from "node:http";
import { connect } from "node:net";
import { test } from "node:test";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { aService } from "../testing/objects.ts";
import { newHealthCheckPorts } from "./health-check-ports.ts";

const events: string[] = [];
const recorder = {
  event: (_object: unknown, type: string, reason: string, message: string) => void events.push(`${type} ${reason} ${message}`),
  flush: () => Promise.resolve(),
};
const options = { recorder, log: discardLogger, nodeName: "n1" };

/** A loopback address that nothing else on the machine uses, so that ports can be chosen. */
const host = `127.88.${(process.pid >> 8) & 255}.${process.pid & 255}`;
const lb = (healthCheckNodePort: number) =>
  aService("lb", { type: "LoadBalancer", externalTrafficPolicy: "Local", healthCheckNodePort });

test("answers whether the node has endpoints of the Service, and no longer when it is gone", async (t) => {
  const ports = newHealthCheckPorts(options, host);
  t.after(() => ports.close());
  const port = 20_001;
  ports.set(lb(port), 2);
  const ask = () => fetch(`http://${host}:${port}/`).catch(() => undefined);
  await waitFor(async () => (await ask())?.status === 200);
  const answer = await ask();
  assert.equal(answer?.headers.get("content-type"), "application/json");
  assert.deepEqual(await answer?.json(), { service: { namespace: "default", name: "lb" }, localEndpoints: 2 });
  ports.set(lb(port), 0);
  assert.equal((await ask())?.status, 503);
  ports.remove("default/lb");
  assert.equal(await ask(), undefined);
});

test("a client that has not asked yet does not outlive the Service", async (t) => {
  const ports = newHealthCheckPorts(options, host);
  t.after(() => ports.close());
  ports.set(lb(20_009), 1);
  await waitFor(async () => (await fetch(`http://${host}:20009/`).catch(() => undefined))?.status === 200);
  const socket = connect({ port: 20_009, host });
  let isClosed = false;
  socket.on("error", () => {}).on("close", () => (isClosed = true));
  socket.write("GET / HTTP/1.1\r\n");
  await settle(30);
  ports.remove("default/lb");
  await waitFor(() => isClosed, { what: "the end of its connection" });
});

test("a taken port is an event on the Service, and is tried again at its next change", async (t) => {
  const taken = createServer();
  const port = 20_002;
  await new Promise<void>((resolve) => taken.listen(port, host, () => resolve()));
  const ports = newHealthCheckPorts(options, host);
  t.after(() => ports.close());
  ports.set(lb(port), 1);
  await waitFor(() => events.length === 1);
  assert.match(
    events[0] ?? "",
    /^Warning FailedToStartServiceHealthcheck node n1 failed to start healthcheck "default\/lb" on port \d+: /,
  );
  await new Promise((resolve) => taken.close(resolve));
  ports.set(lb(port), 1);
  await settle(); // an address is bound without a lookup
  assert.equal((await fetch(`http://${host}:${port}/`)).status, 200);
});

test("a Service that gets another port answers there only; one with policy Cluster or of another type answers nowhere", async (t) => {
  const ports = newHealthCheckPorts(options, host);
  t.after(() => ports.close());
  const status = (port: number): Promise<number> =>
    fetch(`http://${host}:${port}/`).then(
      (answer) => answer.status,
      () => 0,
    );
  ports.set(lb(20_003), 1);
  await waitFor(async () => (await status(20_003)) === 200);
  ports.set(lb(20_004), 1);
  await waitFor(async () => (await status(20_004)) === 200);
  assert.equal(await status(20_003), 0);
  const change = (spec: object) => ({ ...lb(20_004), spec: { ...lb(20_004).spec, ...spec } }) as ReturnType<typeof lb>;
  for (const spec of [{ externalTrafficPolicy: "Cluster" }, { type: "NodePort" }, { healthCheckNodePort: 0 }]) {
    ports.set(change(spec), 1);
    await waitFor(async () => (await status(20_004)) === 0);
    ports.set(lb(20_004), 1);
    await waitFor(async () => (await status(20_004)) === 200);
  }
});
