import assert from "node:assert/strict";
import { test } from "node:test";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import type { Node, Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { endpointSlices, nodes, services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { PartContext } from "../part.ts";
import { startDns } from "./part.ts";
import { aService } from "./testing.ts";

const aNode = (name: string, uid: string, ...ips: string[]): Node => ({
  metadata: { name, uid },
  spec: { podCIDRs: ["10.244.0.0/24"] },
  status: { addresses: ips.map((address) => ({ type: "InternalIP", address })) },
});

test("publishes the tenth address of the range, fails when its Node has other addresses or is another one, and withdraws", async (t) => {
  const clock = newFakeClock();
  const client = newFakeClient({ clock });
  const informers = newInformerFactory(client, { clock, log: discardLogger });
  const ending = new AbortController();
  t.after(() => ending.abort());
  const failures: string[] = [];
  const context = {
    ...{ client, informers, clock, log: discardLogger, nodeName: "n1", metrics: newMetricsRegistry(), signal: ending.signal },
    flags: {
      "cluster-dns": "",
      "dns-port": 0,
      "cluster-domain": "Cluster.Local.",
      "resolv-conf": "/none",
      "dns-client-cidrs": [],
    },
    fail: (err: unknown) => void failures.push((err as Error).message),
  } as unknown as PartContext;
  informers.start(ending.signal);
  await assert.rejects(startDns(context), /there is no Node n1 yet/);
  client.put(nodes, aNode("n1", "u1"));
  await settle();
  await assert.rejects(startDns(context), /no address of type InternalIP yet/);
  client.put(nodes, aNode("n1", "u1", "127.0.0.1"));
  await settle();
  await assert.rejects(startDns(context), /there is no Service default\/kubernetes yet/);
  client.put(services, aService("kubernetes", { clusterIP: "10.96.0.1" }));
  await settle();
  const part = await startDns(context);
  await waitFor(() => client.objects(endpointSlices).length === 1);
  assert.equal(client.object<Service>(services, "kube-system/kube-dns")?.spec.clusterIP, "10.96.0.10");
  await settle();
  await part.check?.();
  client.put(nodes, aNode("n2", "u2", "192.0.2.2"), aNode("n1", "u1", "127.0.0.1", "127.0.0.9"));
  client.remove(nodes, "n2");
  await settle();
  assert.deepEqual(failures, [], "another node's address, and one that it does not listen on");
  client.put(nodes, aNode("n1", "u1", "127.0.0.2"));
  client.put(nodes, aNode("n1", "u3", "127.0.0.1"));
  await settle();
  assert.equal(failures.length, 2);
  ending.abort();
  await part.stop?.();
  assert.deepEqual(client.objects(endpointSlices), []);
});
