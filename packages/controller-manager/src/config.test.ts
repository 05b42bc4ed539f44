import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { parseFlags } from "@coxswain/apimachinery/flags/flags";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { completeConfig, shownConfig } from "./config.ts";
import { kubeControllerManager, settings } from "./flags.ts";
import { defaultConfig } from "./testing/test-context.ts";

const complete = (...argv: string[]) => completeConfig(parseFlags(kubeControllerManager.flags, argv).values);

test("without flags it is what the documentation says", () => {
  const { controllers, ...config } = complete();
  const { controllers: _, ...wanted } = defaultConfig;
  assert.deepEqual(config, wanted);
  assert.ok(controllers.size > 5);
});

for (const { flags, message } of [
  { flags: ["--leader-elect-lease-duration=5s"], message: /leaseDuration must be greater than renewDeadline/ },
  { flags: ["--leader-elect-resource-lock=secrets"], message: /Invalid lock-type secrets/ },
  { flags: ["--leader-elect-resource-name="], message: /^Error: --leader-elect-resource-name must not be empty$/ },
  { flags: ["--leader-elect-resource-namespace="], message: /^Error: --leader-elect-resource-namespace must not be empty$/ },
  { flags: ["--max-endpoints-per-slice=0"], message: /max-endpoints-per-slice must not be less than 1, but got 0/ },
  {
    flags: ["--mirroring-max-endpoints-per-subset=1001"],
    message: /mirroring-max-endpoints-per-subset must not be more than 1000, but got 1001/,
  },
  {
    flags: ["--mirroring-concurrent-service-endpoint-syncs=51"],
    message: /mirroring-concurrent-service-endpoint-syncs must not be more than 50, but got 51/,
  },
  {
    flags: ["--mirroring-concurrent-service-endpoint-syncs=0"],
    message: /mirroring-concurrent-service-endpoint-syncs must not be less than 1, but got 0/,
  },
  {
    flags: ["--concurrent-service-endpoint-syncs=51"],
    message: /concurrent-service-endpoint-syncs must not be more than 50, but got 51/,
  },
  { flags: ["--max-endpoints-per-slice=1001"], message: /max-endpoints-per-slice must not be more than 1000, but got 1001/ },
  { flags: ["--mirroring-max-endpoints-per-subset=0"], message: /mirroring-max-endpoints-per-subset must not be less than 1/ },
  { flags: ["--concurrent-ephemeralvolume-syncs=0"], message: /concurrent-ephemeralvolume-syncs must be greater than 0/ },
  { flags: ["--attach-detach-reconcile-sync-period=500ms"], message: /duration time must be greater than one second/ },
  {
    flags: ["--volume-host-cidr-denylist=10.0.0.0/8,10.0.0.0/40,x"],
    message:
      /failed to parse cidr value:"10.0.0.0\/40" with error:invalid CIDR address: 10.0.0.0\/40; failed to parse cidr value:"x"/,
  },
  { flags: ["--root-ca-file=/nowhere"], message: /--root-ca-file: ENOENT/ },
  { flags: ["--service-account-private-key-file=/nowhere"], message: /--service-account-private-key-file: ENOENT/ },
  {
    flags: ["--root-ca-file=/dev/null", "--controllers=x"],
    message: /"x" is not in the list of known controllers; --root-ca-file: \/dev\/null holds no PEM block$/,
  },
  { flags: ["--controllers=x"], message: /"x" is not in the list of known controllers/ },
  { flags: ["--cluster-cidr=10.0.0.0/8"], message: /needs --allocate-node-cidrs/ },
  { flags: ["--service-cluster-ip-range=10.0.0.0/24"], message: /needs --allocate-node-cidrs/ },
]) {
  test(`refuses ${flags.join(" ")}`, () => assert.throws(() => complete(...flags), message));
}

test("flags that the configuration does not show have their defaults", () => {
  const { values } = parseFlags(kubeControllerManager.flags, []);
  const shown = [
    "profiling",
    "contention-profiling",
    "controllers",
    "secure-port",
    "enable-leader-migration",
    "root-ca-file",
  ] as const;
  assert.deepEqual(
    shown.map((name) => values[name]),
    [true, false, ["*"], 10257, false, ""],
  );
});

test("limits of flags are allowed themselves", () => {
  const { concurrency, maxEndpointsPerSlice, mirroring, volumes } = complete(
    ...["--concurrent-service-endpoint-syncs=50", "--mirroring-concurrent-service-endpoint-syncs=1"],
    ...["--concurrent-ephemeralvolume-syncs=1", "--max-endpoints-per-slice=1000", "--mirroring-max-endpoints-per-subset=1"],
    "--attach-detach-reconcile-sync-period=1s",
  );
  assert.deepEqual([concurrency.endpointSlice, concurrency.endpointSliceMirroring, concurrency.ephemeralVolume], [50, 1, 1]);
  assert.deepEqual([maxEndpointsPerSlice, mirroring.maxEndpointsPerSubset, volumes.attachDetach.syncPeriodMs], [1000, 1, 1000]);
});

test("with an external cloud provider the controllers that need one do not run", () => {
  const [own, external] = [complete(), complete("--cloud-provider=external")].map(({ controllers }) => controllers);
  assert.deepEqual([...(own ?? [])].filter((name) => external?.has(name) === false).toSorted(), [
    "cloud-node-lifecycle",
    "route",
    "service",
  ]);
});

test("the limits of a flag themselves are accepted", () => {
  for (const [flag, ...values] of [
    ["max-endpoints-per-slice", 1, 1000],
    ["mirroring-max-endpoints-per-subset", 1, 1000],
    ["concurrent-service-endpoint-syncs", 1, 50],
    ["mirroring-concurrent-service-endpoint-syncs", 1, 50],
    ["attach-detach-reconcile-sync-period", "1s"],
  ] as const)
    for (const value of values) assert.doesNotThrow(() => complete(`--${flag}=${value}`), `--${flag}=${value}`);
});

/** Path and value of each field, at any depth. */
const fieldsOf = (value: unknown, path: readonly string[] = []): [string, unknown][] =>
  typeof value === "object" && value !== null && !(value instanceof Map || value instanceof Set)
    ? Object.entries(value).flatMap(([key, inner]) => fieldsOf(inner, [...path, key]))
    : [[path.join("."), value]];

test("each number and each switch of the flags sets the field of its name, and no other", () => {
  const byDefault = new Map(fieldsOf(complete()));
  const others: Readonly<Record<string, string>> = { isSyncDisabled: "sync", formerDurationMs: "durationMs" };
  // Those of node CIDRs need further flags.
  const rows = settings.flatMap((group) => Object.entries(group)).filter(([, { flag }]) => flag?.includes("node-cidr") !== true);
  let tried = 0;
  for (const [name, { flag, default: value }] of rows) {
    if (typeof value !== "number" && typeof value !== "boolean") continue;
    const other = typeof value === "boolean" ? !value : name.endsWith("Ms") ? value + 1000 : value > 1 ? value - 1 : value + 1;
    const changed = fieldsOf(complete(`--${flag}=${other}${name.endsWith("Ms") ? "ms" : ""}`)).filter(
      ([path, now]) => !isDeepStrictEqual(now, byDefault.get(path)),
    );
    assert.equal(changed.length, 1, `--${flag}: ${changed.join("; ")}`);
    const [path, now] = changed[0]!;
    assert.deepEqual([path.split(".").at(-1), now], [others[name] ?? name, name === "isSyncDisabled" ? !other : other]);
    tried++;
  }
  assert.ok(tried > 50, String(tried));
});

test("durations of an election that is off do not matter", () => {
  assert.equal(complete("--leader-elect=false", "--leader-elect-lease-duration=5s").leaderElection.enabled, false);
});

test("reads the root CA", (t) => {
  const directory = mkdtempSync(join(tmpdir(), "cox-config-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const path = join(directory, "ca.crt");
  writeFileSync(path, "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n");
  assert.match(complete(`--root-ca-file=${path}`).rootCa ?? "", /BEGIN CERTIFICATE/);
  writeFileSync(path, "no certificate\n");
  assert.throws(() => complete(`--root-ca-file=${path}`), /--root-ca-file: .*ca\.crt holds no PEM block$/);
});

test("/configz shows neither keys nor certificates", () => {
  const secrets = { rootCa: "ca-pem", serviceAccountKey: "key-pem", certificateSigning: { files: new Map(), durationMs: 1 } };
  const shown = shownConfig({ ...complete("--controllers=ttl"), ...secrets });
  hasFields(shown, { controllers: ["ttl"], qps: 20 });
  assert.doesNotMatch(JSON.stringify(shown), /-pem|certificateSigning|serviceAccountKey|rootCa/);
});
