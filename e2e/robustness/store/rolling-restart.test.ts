import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { check } from "../../framework/history/check.ts";
import { newRecording, newRecordingClient } from "../../framework/history/recorder.ts";
import type { ApiServer } from "./apiservers.ts";
import { noNamespaces } from "./etcd-cluster.ts";
import { startInformer } from "./informer.ts";
import { newStage } from "./stage.ts";
import { configMaps } from "./workload.ts";

const rounds = 10;
const clients = 8;
/** Pause between two requests of a client. */
const paceMs = 20;

test("API servers restarted in turn under load, certificates rotated, the leader moved: one retry is enough for all", async (t) => {
  const why = process.env["COX_TEST_LONG"] === undefined ? "long: only with ./cox test --long" : await noNamespaces();
  if (why) return t.skip(why);
  const { apis, etcd, history, namespaces } = await newStage(t, {
    ...{ members: 3, apiServers: 2 },
    flags: () => ["--shutdown-delay-duration=1s"],
  });
  const recording = newRecording();
  const newClient = (name: string, url: () => string) => {
    const client = newRecordingClient({ name, recording, resource: configMaps, ca: apis.ca, token: apis.token, url });
    t.after(() => client.close());
    return client;
  };
  let working = true;
  t.after(() => {
    working = false;
  });
  let requested = 0;
  let failed = 0;
  let tags = 0;
  const load = Array.from({ length: clients }, async (_, i) => {
    const both = apis.servers.map((server, s) => newClient(`client-${i}-${s}`, () => server.url));
    const metadata = { namespace: namespaces[0], name: `item-${i}` };
    for (let n = 0; working; n++) {
      const act = (client: (typeof both)[number]): Promise<{ code: number | undefined }> => {
        const object = { apiVersion: "v1", kind: "ConfigMap", metadata, data: { tag: `tag-${i}-${tags++}` } } as KubeObject;
        if (n === 0) return client.create(object);
        return n % 2 === 0 ? client.update(object) : client.list(`${namespaces[0]}/`);
      };
      requested++;
      for (let attempt = 0; attempt < 2; attempt++) {
        const { code } = await act(both[(i + n + attempt) % both.length] as (typeof both)[number]);
        if (code !== undefined && code < 429) break;
        if (attempt === 1) failed++;
      }
      await delay(paceMs);
    }
  });
  let moves = 0;
  const informers = apis.servers.map((_, i) => {
    const url = (): string => (apis.servers[(i + moves) % apis.servers.length] as ApiServer).url;
    const client = newClient(`watcher-${i}`, url);
    const informer = startInformer({ client, prefix: "", timeoutSeconds: () => 600, onFailure: () => void moves++ });
    t.after(() => informer.stop());
    return informer;
  });

  for (let round = 0; round < rounds; round++) {
    for (const server of apis.servers) {
      await apis.rotateCertificate();
      const health = healthUntilClosed(server);
      await server.stop();
      assert.deepEqual(
        await health,
        { turnedUnready: true, servedMeanwhile: true },
        "health turns unready before the socket closes",
      );
      server.start();
      await server.ready();
      await etcd.moveLeader();
    }
  }
  working = false;
  await Promise.all(load);
  const relists = informers.map((informer) => informer.relists);
  await Promise.all(informers.map((informer) => informer.stop()));
  await history.caughtUp();
  t.diagnostic(JSON.stringify({ requested, failed, relists }));
  assert.deepEqual(check(recording, history.versions(configMaps)).slice(0, 20), []);
  assert.ok(failed <= requested / 1000, `${failed} of ${requested} requests failed twice`);
  assert.deepEqual(relists, [1, 1], "watches went on where they stopped");
});

/** As seen by a load balancer: a server that shuts down is unready for a while but still serves. */
async function healthUntilClosed(server: ApiServer): Promise<{ turnedUnready: boolean; servedMeanwhile: boolean }> {
  let turnedUnready = false;
  let servedMeanwhile = false;
  while (server.running) {
    try {
      const { code } = await server.request("GET", "/readyz");
      if (code !== 200) {
        turnedUnready = true;
        servedMeanwhile ||= (await server.request("GET", "/version")).code === 200;
      }
    } catch {
      // It is shutting down.
    }
    await delay(20);
  }
  return { turnedUnready, servedMeanwhile };
}
