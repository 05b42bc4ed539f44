import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { parseFlags } from "@coxswain/apimachinery/flags/flags";
import { type Clock, realClock } from "@coxswain/apimachinery/process/clock/clock";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger, type Logger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { AuditRecord } from "../audit/event.ts";
import { kubeApiserver } from "../flags.ts";
import { newAuditor } from "./audit.ts";

const makeWith = (clock: Clock, argv: readonly string[], ownLog: Logger = discardLogger, metrics = newMetricsRegistry()) => {
  const { values } = parseFlags(kubeApiserver.flags, ["--etcd-servers=http://127.0.0.1:1", ...argv]);
  return newAuditor(values, { clock, log: ownLog, metrics });
};
const make = (...argv: string[]) => makeWith(realClock, argv);

test("nothing is recorded without a policy", () => {
  assert.equal(make(), undefined);
  assert.equal(make("--audit-log-path=-"), undefined);
});

const log = "--audit-log-path=-";
const webhook = "--audit-webhook-config-file=/missing";

test("a batch may be as large as the largest event", () => {
  assert.equal(make(log, "--audit-log-truncate-max-batch-size=102400"), undefined); // without a policy
  assert.throws(() => make(log, "--audit-log-truncate-max-batch-size=102399"), /max batch size 102399, must be greater than/);
});

for (const { argv, error } of [
  {
    argv: [log, "--audit-log-mode=fast"],
    error: /invalid audit log mode fast, allowed modes are "batch,blocking,blocking-strict"/,
  },
  { argv: [log, "--audit-log-format=xml"], error: /invalid audit log format xml, allowed formats are "legacy,json"/ },
  {
    argv: ["--audit-log-path=/tmp/x", "--audit-log-maxage=-1"],
    error: /--audit-log-maxage -1 can't be a negative number/,
  },
  {
    argv: [webhook, "--audit-webhook-batch-buffer-size=0"],
    error: /invalid audit batch webhook buffer size 0, must be a positive number/,
  },
  {
    argv: [webhook, "--audit-webhook-batch-throttle-burst=0"],
    error: /invalid audit batch webhook throttle burst 0, must be a positive number/,
  },
  {
    argv: [webhook, "--audit-webhook-truncate-max-batch-size=5"],
    error: /invalid audit truncate webhook max batch size 5, must be greater than max event size \(102400\)/,
  },
  { argv: [webhook, "--audit-webhook-version=v1"], error: /invalid group version, allowed versions are/ },
  {
    argv: ["--audit-log-path=/tmp/x", "--audit-log-maxbackup=-1", "--audit-log-maxsize=-2"],
    error: /^Error: \[--audit-log-maxbackup -1 can't be a negative number, --audit-log-maxsize -2 can't be a negative number\]/,
  },
  { argv: [log, "--audit-log-mode=batch", "--audit-log-batch-max-size=0"], error: /invalid audit batch log max batch size 0/ },
  {
    argv: [webhook, "--audit-webhook-batch-throttle-enable", "--audit-webhook-batch-throttle-qps=0"],
    error: /invalid audit batch webhook throttle QPS 0/,
  },
  {
    argv: [log, "--audit-log-truncate-max-event-size=0"],
    error: /invalid audit truncate log max event size 0, must be a positive/,
  },
  {
    argv: [log, webhook, "--audit-log-version=v1", "--audit-webhook-version=v2"],
    error: /\[invalid group version.*, invalid group version/,
  },
  { argv: [log, "--audit-policy-file=/missing"], error: /loading audit policy file: failed to read file path "\/missing"/ },
]) {
  test(`refuses ${argv.slice(1).join(" ")}`, () => {
    assert.throws(() => make(...argv), error);
  });
}

for (const { what, argv } of [
  { what: "a size, an age and a number of backups of 0", argv: ["maxsize=0", "maxage=0", "maxbackup=0"] },
  { what: "numbers for batches that its mode does not form", argv: ["mode=blocking", "batch-max-size=0"] },
  { what: "numbers of a throttle that is off", argv: ["mode=batch", "batch-throttle-enable=false", "batch-throttle-qps=0"] },
]) {
  test(`a log may have ${what}`, () => {
    assert.equal(make("--audit-log-path=/tmp/x", ...argv.map((flag) => `--audit-log-${flag}`)), undefined);
  });
}

test("standard output has no size, no age and no backups to refuse; no flag of a backend that is not used is looked at", () => {
  assert.equal(make(log, "--audit-log-maxsize=-1", "--audit-webhook-mode=fast"), undefined);
});

const policyText = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n";

/** An auditor whose log is in a folder of its own. @returns also the sizes of the files in it */
function withLog(t: TestContext, argv: readonly string[], ownLog?: Logger) {
  const root = mkdtempSync(join(tmpdir(), "cox-auditor-"));
  const policy = join(root, "policy.yaml");
  writeFileSync(policy, policyText);
  const folder = join(root, "logs");
  const clock = newFakeClock();
  const metrics = newMetricsRegistry();
  const flags = [`--audit-policy-file=${policy}`, `--audit-log-path=${join(folder, "a.log")}`, "--audit-log-format=legacy"];
  const auditor = makeWith(clock, [...flags, ...argv.map((flag) => `--audit-log-${flag}`)], ownLog, metrics)!;
  t.after(async () => {
    await auditor.backend.stop(AbortSignal.abort());
    rmSync(root, { recursive: true });
  });
  const sizes = (): number[] =>
    readdirSync(folder)
      .sort()
      .map((name) => statSync(join(folder, name)).size);
  return { ...auditor, clock, folder, sizes, registry: metrics };
}

const aLine = (bytes: number): AuditRecord =>
  ({
    objectBytes: 0,
    level: "Metadata",
    item: () => Buffer.alloc(bytes),
    legacy: "x".repeat(bytes - 1),
  }) as unknown as AuditRecord;

test("--audit-log-maxsize is in megabytes of 1,048,576 bytes; of older logs --audit-log-maxbackup are kept", async (t) => {
  const { backend, sizes, clock } = withLog(t, ["maxsize=1", "maxbackup=1", "mode=blocking-strict"]);
  const megabyte = 1024 * 1024;
  for (const bytes of [megabyte - 100, 100]) assert.equal(await backend.process([aLine(bytes)]), true);
  assert.deepEqual(sizes(), [megabyte]);
  for (const bytes of [200, megabyte]) {
    await clock.advance(1_000);
    assert.equal(await backend.process([aLine(bytes)]), true);
  }
  await waitFor(() => sizes().length === 2, { what: "the oldest log to be removed" });
  assert.deepEqual(sizes(), [200, megabyte]);
});

test("--audit-log-compress packs older logs, --audit-log-maxage removes those of earlier days", async (t) => {
  const { backend, clock, folder } = withLog(t, ["maxsize=1", "maxage=2", "compress", "mode=blocking-strict"]);
  const names = (): string =>
    readdirSync(folder)
      .map((name) => name.replace(/[\d-]+T.*\.log/, "-old.log"))
      .sort()
      .join();
  for (const _ of [1, 2]) assert.equal(await backend.process([aLine(1024 * 1024)]), true);
  await waitFor(() => names() === "a-old.log.gz,a.log", { what: "the older log to be packed" });
  await clock.advance(2 * 24 * 3_600_000 + 1);
  assert.equal(await backend.process([aLine(1024 * 1024)]), true);
  await waitFor(() => readdirSync(folder).length === 2 && names() === "a-old.log.gz,a.log", {
    what: "the oldest log to be removed",
  });
});

for (const { mode, want } of [
  { mode: "batch", want: true },
  { mode: "blocking", want: true },
  { mode: "blocking-strict", want: false },
]) {
  test(`an event that cannot be written is ${want ? "no" : "a"} failure of its request in mode ${mode}`, async (t) => {
    const { backend, folder } = withLog(t, [`mode=${mode}`]);
    rmSync(folder, { recursive: true });
    writeFileSync(folder, "no folder");
    assert.equal(await backend.process([aLine(10)]), want);
  });
}

test("an event that is too large is lost at once, and not kept for the next batch", async (t) => {
  const flags = ["mode=batch", "batch-max-size=10", "truncate-enabled", "truncate-max-event-size=10000"];
  const { backend, registry, clock, folder } = withLog(t, flags);
  void backend.process([aLine(20_000), aLine(100)]);
  assert.match(await registry.render(), /^apiserver_audit_error_total\{plugin="truncate"\} 1$/m);
  await clock.advance(30_000);
  await backend.stop(new AbortController().signal);
  assert.equal(readFileSync(join(folder, "a.log"), "utf8").length, 100);
});

test("a version of events that is deprecated is named in the log, for the backend that uses it", (t) => {
  const warnings: string[] = [];
  const log = { ...discardLogger, warn: (message: string) => void warnings.push(message) };
  withLog(t, ["version=audit.k8s.io/v1"], log);
  assert.deepEqual(warnings, []);
  withLog(t, ["version=audit.k8s.io/v1beta1"], log);
  assert.deepEqual(warnings, [
    '"audit.k8s.io/v1beta1" is deprecated and will be removed in a future release, use "audit.k8s.io/v1" instead',
  ]);
});

/** An auditor with a webhook on loopback whose first answer is 500. @returns also the number of requests that it got */
async function withWebhook(t: TestContext, argv: readonly string[]) {
  let calls = 0;
  const server = createServer((request, response) => {
    request.resume().on("end", () => response.writeHead(calls++ === 0 ? 500 : 200).end());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const folder = mkdtempSync(join(tmpdir(), "cox-auditor-"));
  const [policy, kubeconfig] = [join(folder, "policy.yaml"), join(folder, "webhook.json")];
  writeFileSync(policy, policyText);
  const host = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const clusters = [{ name: "c", cluster: { server: host } }];
  const contexts = [{ name: "c", context: { cluster: "c", user: "u" } }];
  const config = { clusters, contexts, users: [{ name: "u", user: {} }], "current-context": "c" };
  writeFileSync(kubeconfig, JSON.stringify({ apiVersion: "v1", kind: "Config", ...config }));
  const clock = newFakeClock();
  const flags = [`--audit-policy-file=${policy}`, `--audit-webhook-config-file=${kubeconfig}`, ...argv];
  const backend = makeWith(clock, flags)!.backend;
  t.after(async () => {
    await backend.stop(AbortSignal.abort());
    server.closeAllConnections();
    server.close();
    rmSync(folder, { recursive: true });
  });
  return { backend, clock, calls: () => calls };
}

const aRecord = { objectBytes: 0, level: "Metadata", item: () => Buffer.from("{}"), legacy: "" } as unknown as AuditRecord;
for (const { flags, delayMs } of [
  { flags: ["--audit-webhook-batch-initial-backoff=1s"], delayMs: 1_000 },
  { flags: ["--audit-webhook-initial-backoff=2s", "--audit-webhook-batch-initial-backoff=1s"], delayMs: 2_000 },
  { flags: [], delayMs: 10_000 },
]) {
  test(`with ${flags.join(" and ") || "no flag"} a failed event is sent again after ${delayMs} ms`, async (t) => {
    const { backend, clock, calls } = await withWebhook(t, [...flags, "--audit-webhook-mode=blocking-strict"]);
    const processed = backend.process([aRecord]);
    await waitFor(() => calls() === 1 && clock.nextDue !== undefined);
    const waitsMs = clock.nextDue! - clock.now();
    assert.ok(waitsMs >= delayMs && waitsMs <= delayMs * 1.2, `${waitsMs} ms`);
    await clock.advance(waitsMs);
    assert.equal(await processed, true);
  });
}

test("a webhook in batch mode gets the next batch while another one is repeated", async (t) => {
  const { backend, clock, calls } = await withWebhook(t, ["--audit-webhook-batch-max-size=1"]);
  assert.equal(backend.process([aRecord, aRecord]), true, "both are only kept");
  await waitFor(() => calls() === 2 && clock.nextDue !== undefined);
});
