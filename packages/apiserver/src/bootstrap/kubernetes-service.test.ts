import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { type LiveServers, runKubernetesService } from "./kubernetes-service.ts";

const never = new Promise<never>(() => {});

for (const { name, remove } of [
  { name: "etcd does not answer", remove: () => never },
  { name: "etcd refuses", remove: () => Promise.reject(new Error("no leader")) },
] satisfies { name: string; remove: LiveServers["remove"] }[]) {
  test(`a server that stops while ${name} gives up its endpoint after two seconds at most`, async () => {
    const clock = newFakeClock();
    const loop = runKubernetesService({
      client: newFakeClient(),
      servers: { renew: async () => (current) => current, remove },
      advertiseAddress: "192.0.2.10",
      securePort: 6443,
      clusterIp: "10.0.0.1",
      nodePort: 0,
      clock,
      log: discardLogger,
    });
    await loop.begun;
    let stopped = false;
    const stopping = loop.stop().then(() => {
      stopped = true;
    });
    await clock.advance(2000);
    assert.ok(stopped);
    await stopping;
    assert.equal(clock.waiting, 0);
  });
}
