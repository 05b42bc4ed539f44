import assert from "node:assert/strict";
import { test } from "node:test";
import { parseFlags } from "@coxswain/apimachinery/flags/flags";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { kubeApiserver } from "../flags.ts";
import { newAuditor } from "./audit.ts";

const make = (...argv: string[]) => {
  const { values } = parseFlags(kubeApiserver.flags, ["--etcd-servers=http://127.0.0.1:1", ...argv]);
  return newAuditor(values, { clock: realClock, log: discardLogger, metrics: newMetricsRegistry() });
};

test("nothing is recorded without a policy", () => {
  assert.equal(make(), undefined);
  assert.equal(make("--audit-log-path=-"), undefined);
});

const log = "--audit-log-path=-";
const webhook = "--audit-webhook-config-file=/missing";
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
  { argv: [log, "--audit-policy-file=/missing"], error: /loading audit policy file: failed to read file path "\/missing"/ },
]) {
  test(`refuses ${argv.slice(1).join(" ")}`, () => {
    assert.throws(() => make(...argv), error);
  });
}
