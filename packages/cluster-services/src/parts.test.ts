import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { ServicesFlags } from "./flags.ts";
import { parts } from "./parts.ts";

test("each part runs where it has to, is on or off by default, and has its own code", async () => {
  const all = await Promise.all(
    parts.map(async ({ name, runs, onByDefault, load }) => [name, runs, onByDefault, (await load()).name].join(" ")),
  );
  assert.deepEqual(all, [
    "api-proxy node false startApiProxy",
    "pod-network node true startPodNetwork",
    "services node true startServices",
    "dns node true startDns",
    "metrics-api once true startMetricsApi",
    "local-volumes node true startLocalVolumes",
    "ingress node false startIngress",
    "load-balancers once true startLoadBalancers",
    "load-balancer-addresses node true startLoadBalancerAddresses",
  ]);
});

test("where there is no configuration of the pod network there is nothing to remove", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "cox-parts-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const [, network] = parts;
  assert.equal(network?.name, "pod-network");
  assert.equal(await network.removeLeft?.({ "cni-conf-dir": folder } as ServicesFlags), false);
});
