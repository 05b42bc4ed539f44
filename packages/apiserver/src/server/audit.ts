/**
 * Creates the auditor from the --audit-* flags; none without a policy.
 * Source: k8s.io/apiserver pkg/server/options/audit.go
 */

import { readFileSync } from "node:fs";
import { dirname } from "node:path";
import { parseKubeconfig } from "@coxswain/apimachinery/client/kubeconfig";
import { ConfigError } from "@coxswain/apimachinery/flags/run-main";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import type { Connect } from "@coxswain/apimachinery/transport/connect";
import {
  type AuditBackend,
  buffered,
  ignoringErrors,
  newAuditMetrics,
  newPluginError,
  type PluginError,
  truncating,
  union,
} from "../audit/backend.ts";
import { type AuditVersion, auditVersions } from "../audit/event.ts";
import { newLogBackend } from "../audit/log-backend.ts";
import { loadPolicy, newPolicyEvaluator } from "../audit/policy.ts";
import { newObjectRecorder } from "../audit/recorded-object.ts";
import { newWebhookBackend } from "../audit/webhook-backend.ts";
import type { Auditor } from "../filters/audit.ts";
import type { ApiserverFlags } from "../flags.ts";

interface Common {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: MetricsRegistry;
  /** Dials the webhook; undefined: directly. */
  readonly connect?: Connect | undefined;
}

const modes = ["batch", "blocking", "blocking-strict"];
const formats = ["legacy", "json"];

/**
 * @returns undefined without a policy or a backend
 * @throws ConfigError with all problems of the flags, or the problem of the first invalid file
 */
export function newAuditor(flags: ApiserverFlags, { clock, log, metrics, connect }: Common): Auditor | undefined {
  const auditMetrics = newAuditMetrics(metrics); // exposed without a policy, too
  const problems = [...logProblems(flags), ...webhookProblems(flags)];
  if (problems.length > 0) throw new ConfigError(problems.length === 1 ? problems[0] : `[${problems.join(", ")}]`);
  const path = flags["audit-policy-file"];
  const wanted = [flags["audit-log-path"], flags["audit-webhook-config-file"]].some((value) => value !== "");
  if (path === "") {
    if (wanted) log.v(2)?.info("No audit policy file provided, no events will be recorded");
    return undefined;
  }
  const policy = orConfigError("loading audit policy file", () => loadPolicy(path));
  if (!wanted) return undefined;
  warnOfOldVersions(flags, log);
  const fail = newPluginError(auditMetrics, log.named("audit"));
  const backends: AuditBackend[] = [];
  if (flags["audit-log-path"] !== "") {
    const backend = orConfigError("cannot open the audit log", () => logBackend(flags, clock, fail));
    backends.push(wrapped("log", flags, backend, clock, fail));
  }
  if (flags["audit-webhook-config-file"] !== "") {
    const backend = orConfigError("initializing audit webhook", () => webhookBackend(flags, connect, clock, fail));
    backends.push(wrapped("webhook", flags, backend, clock, fail));
  }
  return { evaluate: newPolicyEvaluator(policy), backend: union(backends), objects: newObjectRecorder(), metrics: auditMetrics };
}

function logBackend(flags: ApiserverFlags, clock: Clock, fail: PluginError): AuditBackend {
  const options = {
    path: flags["audit-log-path"],
    format: flags["audit-log-format"] as "json" | "legacy", // cast: the flag's check allows no others
    version: flags["audit-log-version"] as AuditVersion, // cast: `versionProblem` refuses others
    maxBytes: flags["audit-log-maxsize"] * 1024 * 1024,
    maxAgeDays: flags["audit-log-maxage"],
    maxBackups: flags["audit-log-maxbackup"],
    compress: flags["audit-log-compress"],
  };
  return newLogBackend(options, clock, fail);
}

function webhookBackend(flags: ApiserverFlags, connect: Connect | undefined, clock: Clock, fail: PluginError): AuditBackend {
  const path = flags["audit-webhook-config-file"];
  const client = parseKubeconfig(readFileSync(path, "utf8"), { directory: dirname(path) });
  // The deprecated flag is used when only it was set.
  const [initial, batchInitial] = [flags["audit-webhook-initial-backoff"], flags["audit-webhook-batch-initial-backoff"]];
  const options = {
    client,
    initialBackoffMs: initial === 10_000 ? batchInitial : initial,
    version: flags["audit-webhook-version"] as AuditVersion, // cast: the flag's check allows no others
    connect,
  };
  return newWebhookBackend(options, clock, fail);
}

type Plugin = "log" | "webhook";

/** Truncates before buffering, so that no oversized event is buffered, and behind the buffer, to limit the size of batches. */
function wrapped(plugin: Plugin, flags: ApiserverFlags, backend: AuditBackend, clock: Clock, fail: PluginError): AuditBackend {
  const limits = {
    version: flags[`audit-${plugin}-version`] as AuditVersion, // cast: the flag's check allows no others
    maxEventBytes: flags[`audit-${plugin}-truncate-max-event-size`],
    maxBatchBytes: flags[`audit-${plugin}-truncate-max-batch-size`],
  };
  const truncate = (inner: AuditBackend): AuditBackend =>
    flags[`audit-${plugin}-truncate-enabled`] ? truncating(inner, limits, fail) : inner;
  switch (flags[`audit-${plugin}-mode`]) {
    case "blocking-strict":
      return truncate(backend);
    case "blocking":
      return ignoringErrors(truncate(backend));
    default: {
      const options = {
        bufferSize: flags[`audit-${plugin}-batch-buffer-size`],
        maxBatchSize: flags[`audit-${plugin}-batch-max-size`],
        maxBatchWaitMs: flags[`audit-${plugin}-batch-max-wait`],
        throttle: flags[`audit-${plugin}-batch-throttle-enable`]
          ? { qps: flags[`audit-${plugin}-batch-throttle-qps`], burst: flags[`audit-${plugin}-batch-throttle-burst`] }
          : undefined,
        concurrent: plugin === "webhook",
      };
      return truncate(buffered(truncate(backend), options, clock, fail));
    }
  }
}

function logProblems(flags: ApiserverFlags): string[] {
  if (flags["audit-log-path"] === "") return [];
  const problems = pluginProblems("log", flags);
  const format = flags["audit-log-format"];
  if (!formats.includes(format)) {
    problems.push(`invalid audit log format ${format}, allowed formats are ${JSON.stringify(formats.join(","))}`);
  }
  if (flags["audit-log-path"] === "-") return problems;
  for (const name of ["audit-log-maxage", "audit-log-maxbackup", "audit-log-maxsize"] as const) {
    if (flags[name] < 0) problems.push(`--${name} ${flags[name]} can't be a negative number`);
  }
  return problems;
}

function webhookProblems(flags: ApiserverFlags): string[] {
  return flags["audit-webhook-config-file"] === "" ? [] : pluginProblems("webhook", flags);
}

function pluginProblems(plugin: Plugin, flags: ApiserverFlags): string[] {
  return [batchProblem(plugin, flags), truncateProblem(plugin, flags), versionProblem(plugin, flags)].filter(
    (problem) => problem !== undefined,
  );
}

function batchProblem(plugin: Plugin, flags: ApiserverFlags): string | undefined {
  const mode = flags[`audit-${plugin}-mode`];
  if (!modes.includes(mode)) {
    return `invalid audit ${plugin} mode ${mode}, allowed modes are ${JSON.stringify(modes.join(","))}`;
  }
  if (mode !== "batch") return undefined;
  const positive: [string, number][] = [
    ["buffer size", flags[`audit-${plugin}-batch-buffer-size`]],
    ["max batch size", flags[`audit-${plugin}-batch-max-size`]],
  ];
  if (flags[`audit-${plugin}-batch-throttle-enable`]) {
    positive.push(["throttle QPS", flags[`audit-${plugin}-batch-throttle-qps`]]);
    positive.push(["throttle burst", flags[`audit-${plugin}-batch-throttle-burst`]]);
  }
  const wrong = positive.find(([, value]) => value <= 0);
  return wrong && `invalid audit batch ${plugin} ${wrong[0]} ${wrong[1]}, must be a positive number`;
}

function truncateProblem(plugin: Plugin, flags: ApiserverFlags): string | undefined {
  const maxEvent = flags[`audit-${plugin}-truncate-max-event-size`];
  const maxBatch = flags[`audit-${plugin}-truncate-max-batch-size`];
  if (maxEvent <= 0) return `invalid audit truncate ${plugin} max event size ${maxEvent}, must be a positive number`;
  if (maxBatch >= maxEvent) return undefined;
  return `invalid audit truncate ${plugin} max batch size ${maxBatch}, must be greater than max event size (${maxEvent})`;
}

function versionProblem(plugin: Plugin, flags: ApiserverFlags): string | undefined {
  const version = flags[`audit-${plugin}-version`];
  // Cast: `includes` takes only members of the list.
  if ((auditVersions as readonly string[]).includes(version)) return undefined;
  return `invalid group version, allowed versions are [${auditVersions.map((known) => JSON.stringify(known)).join(" ")}]`;
}

function warnOfOldVersions(flags: ApiserverFlags, log: Logger): void {
  const present = auditVersions.at(-1);
  const used = [
    flags["audit-log-path"] === "" ? present : flags["audit-log-version"],
    flags["audit-webhook-config-file"] === "" ? present : flags["audit-webhook-version"],
  ];
  for (const version of used) {
    if (version === present) continue;
    log.warn(
      `${JSON.stringify(version)} is deprecated and will be removed in a future release, use ${JSON.stringify(present)} instead`,
    );
  }
}

function orConfigError<T>(doing: string, make: () => T): T {
  try {
    return make();
  } catch (err) {
    throw new ConfigError(`${doing}: ${messageOf(err)}`, { cause: err });
  }
}
