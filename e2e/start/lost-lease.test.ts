/**
 * etcd is suspended for longer than the renew deadline of leases: controller manager and scheduler exit as upstream's do. Their
 * replacements, started while etcd is still suspended, become leaders and work when it continues.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Lease } from "@coxswain/apimachinery/objects/schema/kinds/coordination/v1";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { deployments, leases, nodes, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { pauseProcess } from "@coxswain/apimachinery/testing/pause-process";
import { daemonProcess, etcdProcess } from "@coxswain/dev-cluster/daemons";
import { newManualCluster, type OwnProcess, untilReady } from "../framework/own-cluster.ts";
import { waitFor } from "../framework/wait-for.ts";

/** The long run uses upstream's defaults. */
const seconds = process.env["COX_TEST_LONG"]
  ? { lease: 15, renew: 10, retry: 2, paused: 22 }
  : { lease: 6, renew: 4, retry: 1, paused: 0 };
const electionFlags = [
  `--leader-elect-lease-duration=${seconds.lease}s`,
  `--leader-elect-renew-deadline=${seconds.renew}s`,
  `--leader-elect-retry-period=${seconds.retry}s`,
];
const daemons = [
  { name: "kube-controller-manager", code: 255, says: /^F.*leaderelection lost/m },
  { name: "kube-scheduler", code: 1, says: /^E.*Leaderelection lost/m },
] as const;

test("after etcd stood still both lease holders have ended, and their replacements lead", async (t) => {
  const cluster = await newManualCluster(t);
  const { settings } = cluster;
  const etcd = cluster.start(etcdProcess(settings));
  const server = cluster.start(daemonProcess(settings, "kube-apiserver"));
  const start = (name: (typeof daemons)[number]["name"]): OwnProcess => {
    const spec = daemonProcess(settings, name);
    return cluster.start({ ...spec, args: [...spec.args, ...electionFlags] });
  };
  const first = daemons.map(({ name }) => start(name));
  await untilReady(settings, server, settings.ports.apiserver);
  const client = await cluster.client();
  const leaseOf = (name: string): Promise<Lease> => client.get<Lease>(leases, { namespace: "kube-system", name });
  const holders = await Promise.all(
    daemons.map(({ name }) =>
      waitFor(`${name} to lead`, async () => (await leaseOf(name)).spec?.holderIdentity || false, { retry: isNotFound }),
    ),
  );

  const pausedMs = performance.now();
  await pauseProcess(etcd.pid);
  for (const [i, { name, code, says }] of daemons.entries()) {
    const one = first[i] as OwnProcess;
    assert.equal(await waitFor(`${name} to end`, async () => one.end()), code, one.log().slice(-2_000));
    assert.match(one.log(), says);
  }
  // A supervisor restarts them without knowing about etcd.
  const second = daemons.map(({ name }) => start(name));
  await waitFor("etcd to have stood long enough", async () => performance.now() - pausedMs >= seconds.paused * 1000);
  etcd.signal("SIGCONT");

  await Promise.all(
    daemons.map(({ name }, i) =>
      waitFor(
        `the second ${name} to lead`,
        async () => {
          const one = second[i] as OwnProcess;
          assert.equal(one.end(), undefined, one.log().slice(-2_000));
          const holder = (await leaseOf(name)).spec?.holderIdentity;
          return Boolean(holder) && holder !== holders[i];
        },
        { retry: (err) => !(err instanceof assert.AssertionError) },
      ),
    ),
  );
  assert.equal(server.end(), undefined, "the API server has outlived it");

  const create = (ref: ResourceRef, object: object): Promise<unknown> => client.create(ref, object as KubeObject);
  const room = { cpu: "4", memory: "4Gi", pods: "110" };
  const conditions = [{ type: "Ready", status: "True" }];
  await create(nodes, { metadata: { name: "n" }, spec: {}, status: { capacity: room, allocatable: room, conditions } });
  await client.patch(nodes, { name: "n" }, { type: "merge", body: { spec: { taints: null } } });
  const labels = { app: "web" };
  const template = { metadata: { labels }, spec: { containers: [{ name: "main", image: "busybox" }] } };
  const spec = { replicas: 1, selector: { matchLabels: labels }, template };
  await create(deployments, { metadata: { namespace: "default", name: "web" }, spec });
  await waitFor("a pod to be made and bound", async () => {
    const { items } = await client.list<Pod>(pods, { namespace: "default" });
    return items[0]?.spec.nodeName === "n";
  });
});
