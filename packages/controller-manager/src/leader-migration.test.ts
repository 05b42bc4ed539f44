import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { newLeaderStatus } from "@coxswain/apimachinery/controller/leader-status";
import { newFeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import { parseFlags } from "@coxswain/apimachinery/flags/flags";
import { valuesOfFlags } from "@coxswain/apimachinery/flags/settings";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newUnlimitedTurns } from "@coxswain/apimachinery/process/event-loop/turns";
import { newLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { completeConfig } from "./config.ts";
import { leaderElectionSettings } from "./flags/generic.ts";
import { kubeControllerManager } from "./flags.ts";
import { leaderMigrationOf, shareOf } from "./leader-migration.ts";
import { runManager } from "./manager.ts";
import { startLeaseApi } from "./testing/lease-api.ts";

const on = "--enable-leader-migration";

function fileOf(t: TestContext, text: string): string {
  const directory = mkdtempSync(join(tmpdir(), "cox-migration-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const path = join(directory, "migration.yaml");
  writeFileSync(path, text);
  return path;
}

function migrationOf(...argv: string[]) {
  const errors: string[] = [];
  const { values } = parseFlags(kubeControllerManager.flags, argv);
  const { enabled } = valuesOfFlags(leaderElectionSettings, values);
  const migration = leaderMigrationOf(values, { enabled }, errors);
  return { migration, errors };
}

test("without a file the cloud's controllers move, to whatever program has both locks", () => {
  assert.equal(migrationOf().migration, undefined);
  assert.equal(migrationOf(on, "--leader-elect=false").migration, undefined);
  const { migration, errors } = migrationOf(on);
  assert.deepEqual(errors, []);
  assert.equal(migration?.leaderName, "cloud-provider-extraction-migration");
  assert.equal(migration?.resourceLock, "leases");
  for (const name of ["route", "service", "cloud-node-lifecycle"]) assert.equal(shareOf(migration, name), "migrated");
  assert.equal(shareOf(migration, "deployment"), "main");
  assert.equal(shareOf(undefined, "route"), "main");
});

for (const version of ["v1alpha1", "v1beta1"]) {
  test(`reads the file of ${version}: ours, anybody's and another program's`, (t) => {
    const path = fileOf(
      t,
      `apiVersion: controllermanager.config.k8s.io/${version}
kind: LeaderMigrationConfiguration
leaderName: moving
controllerLeaders:
- {name: route, component: kube-controller-manager}
- {name: service, component: cloud-controller-manager}
- {name: nodeipam, component: "*"}
`,
    );
    const { migration, errors } = migrationOf(on, `--leader-migration-config=${path}`);
    assert.deepEqual(errors, []);
    assert.equal(migration?.leaderName, "moving");
    assert.equal(migration?.resourceLock, "leases");
    assert.deepEqual(
      ["route", "service", "nodeipam", "podgc"].map((name) => shareOf(migration, name)),
      ["migrated", "unowned", "migrated", "main"],
    );
  });
}

for (const lock of ["leases", "endpoints"])
  test(`the second lock may be one of ${lock}`, (t) => {
    const text = `apiVersion: controllermanager.config.k8s.io/v1beta1\nkind: LeaderMigrationConfiguration\nleaderName: a\nresourceLock: ${lock}\n`;
    const { migration, errors } = migrationOf(on, `--leader-migration-config=${fileOf(t, text)}`);
    assert.deepEqual([migration?.resourceLock, errors], [lock, []]);
  });

for (const { name, text, message } of [
  {
    name: "another kind",
    text: "apiVersion: v1\nkind: Pod\n",
    message: /unable to read leader migration configuration from .*no kind "Pod" is registered/,
  },
  { name: "a list that is none", text: "controllerLeaders: 3\n", message: /controllerLeaders is not a list/ },
  { name: "a leader that is none", text: "controllerLeaders: [3]\n", message: /controllerLeaders\[0\] is not an object/ },
  { name: "a name that is none", text: "leaderName: 3\n", message: /leaderName is not a string/ },
  {
    name: "nothing",
    text: "",
    message:
      /^failed to parse leader migration configuration: \[leaderName: Required value: leaderName must be set for LeaderMigrationConfiguration\]$/,
  },
  {
    name: "a lock that is none, and leaders without names",
    text: "leaderName: a\nresourceLock: pods\ncontrollerLeaders:\n- {name: a}\n- {component: b}\n",
    message:
      /^failed to parse leader migration configuration: \[resourceLock: Invalid value: "pods": resource Lock must be one of 'leases' or 'endpoints' controllerLeaders\[0\]\.component: Required value: component must be set controllerLeaders\[1\]\.name: Required value: name must be set\]$/,
  },
]) {
  test(`refuses a file with ${name}`, (t) => {
    const head = text.startsWith("apiVersion")
      ? ""
      : "apiVersion: controllermanager.config.k8s.io/v1beta1\nkind: LeaderMigrationConfiguration\n";
    const { errors } = migrationOf(on, `--leader-migration-config=${fileOf(t, head + text)}`);
    assert.equal(errors.length, 1);
    assert.match(errors[0] as string, message);
  });
}

test("of several entries for a controller the last one counts; without a migration all run under the main lock", () => {
  const leaders = ["cloud-controller-manager", "kube-controller-manager"].map((component) => ({ name: "route", component }));
  const migration = { leaderName: "moving", resourceLock: "leases", controllerLeaders: leaders };
  assert.equal(shareOf(migration, "route"), "migrated");
  assert.equal(shareOf({ ...migration, controllerLeaders: leaders.toReversed() }, "route"), "unowned");
  assert.equal(shareOf(undefined, "route"), "main");
});

test("also without leader election its file is checked", (t) => {
  const path = fileOf(t, "apiVersion: controllermanager.config.k8s.io/v1beta1\nkind: LeaderMigrationConfiguration\n");
  assert.equal(migrationOf(on, "--leader-elect=false", `--leader-migration-config=${path}`).errors.length, 1);
});

test("refuses it while its gate is off", () => {
  const gate = "--feature-gates=ControllerManagerLeaderMigration=false";
  assert.deepEqual(migrationOf(on, gate).errors, ["Leader Migration is not enabled through feature gate"]);
});

/** A manager with three controllers: one stays, one migrates and runs here, one belongs to another program. */
async function startManager(t: TestContext, host: string) {
  const path = fileOf(
    t,
    `apiVersion: controllermanager.config.k8s.io/v1beta1
kind: LeaderMigrationConfiguration
leaderName: moving
controllerLeaders: [{name: ttl, component: "*"}, {name: podgc, component: cloud-controller-manager}]
`,
  );
  const argv = ["--controllers=serviceaccount,ttl,podgc", on, `--leader-migration-config=${path}`, "-v=1"];
  const config = completeConfig(parseFlags(kubeControllerManager.flags, argv).values);
  const lines: string[] = [];
  const ending = new AbortController();
  t.after(() => ending.abort());
  const clock = newFakeClock();
  const metrics = newMetricsRegistry({});
  const leadership = newLeaderStatus({ name: "kube-controller-manager", leaseDurationMs: 300_000, clock, metrics });
  const end = runManager({
    leadership,
    config: {
      ...config,
      leaderElection: { ...config.leaderElection, leaseDurationMs: 300_000, renewDeadlineMs, retryPeriodMs },
    },
    clientConfig: { host },
    log: newLogger({ verbosity: 1, write: (line) => void lines.push(line) }),
    clock,
    metrics,
    featureGates: newFeatureGates("kube-controller-manager", {}),
    turns: newUnlimitedTurns(),
    signal: ending.signal,
  });
  const started = () => lines.flatMap((line) => /Starting.*controller="?([a-z]+)/.exec(line)?.[1] ?? []);
  /** Advances the fake clock through retry periods until the controller has started. */
  const starts = (name: string): Promise<true> =>
    waitFor(
      async () => {
        await clock.advance(retryPeriodMs);
        return started().includes(name);
      },
      { what: `${name} to start` },
    );
  return { clock, metrics, end, started, starts, stop: () => ending.abort() };
}

const retryPeriodMs = 20;
/** Long enough that delayed requests on a slow machine do not cost the leader its lease. */
const renewDeadlineMs = 200_000;

test("a migrating controller starts under the second lock, one of another program does not start", async (t) => {
  const { host, leases } = await startLeaseApi(t);
  const manager = await startManager(t, host);
  await manager.starts("ttl");
  assert.deepEqual(manager.started(), ["serviceaccount", "ttl"]);
  assert.deepEqual([...leases.keys()], ["kube-controller-manager", "moving"]);
  const shown = await manager.metrics.render();
  for (const name of leases.keys()) assert.ok(shown.includes(`leader_election_master_status{name="${name}"} 1\n`), shown);
  manager.stop();
  assert.equal(await manager.end, "stopped");
});

test("waits for the second lock while the other controllers work, and ends when it loses it", async (t) => {
  const { host, hold } = await startLeaseApi(t);
  hold("moving", "somebody");
  const manager = await startManager(t, host);
  await manager.starts("serviceaccount");
  assert.deepEqual(manager.started(), ["serviceaccount"]);
  hold("moving", "");
  await manager.starts("ttl");
  hold("moving", "somebody");
  let end: unknown;
  void manager.end.then((how) => {
    end = how;
  });
  await waitFor(
    async () => {
      await manager.clock.advance(renewDeadlineMs / 10);
      return end;
    },
    { what: "it to end" },
  );
  assert.equal(end, "leadership-lost");
});
