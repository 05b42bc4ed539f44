/**
 * Audit backends and their wrappers: modes, buffering, truncation. A backend reports whether it accepted the events; lost
 * events are counted and logged here, never thrown.
 * Source: k8s.io/apiserver plugin/pkg/audit/{buffered,truncate}, pkg/audit/{union,metrics}.go
 */
import type { TokenBucket } from "@coxswain/apimachinery/client/rate-limit";
import { newTokenBucket, unlimited } from "@coxswain/apimachinery/client/rate-limit";
import type { Clock, Timer } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { Counter, CounterChild, MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import definitions from "../metrics.json" with { type: "json" };
import { type AuditRecord, type AuditVersion, eventJson } from "./event.ts";
import { levels } from "./policy.ts";

export interface AuditBackend {
  /** @returns whether the events were accepted; synchronously when no I/O is pending. */
  process(records: readonly AuditRecord[]): boolean | Promise<boolean>;
  /** Flushes buffered events; gives up when the signal is aborted. */
  stop(signal: AbortSignal): Promise<void>;
}

export interface AuditMetrics {
  readonly events: CounterChild;
  readonly errors: Counter;
  readonly levels: Counter;
  readonly rejected: CounterChild;
}

export function newAuditMetrics(metrics: MetricsRegistry): AuditMetrics {
  return {
    events: metrics.counter(definitions.apiserver_audit_event_total),
    errors: metrics.counter(definitions.apiserver_audit_error_total),
    levels: metrics.counter(definitions.apiserver_audit_level_total),
    rejected: metrics.counter(definitions.apiserver_audit_requests_rejected_total),
  };
}

/** Counts lost events and writes them to the server log. */
export type PluginError = (plugin: string, err: unknown, records: readonly AuditRecord[]) => void;

/** Logs at most ten of the lost events, in the legacy format. */
export function newPluginError(metrics: AuditMetrics, log: Logger): PluginError {
  return (plugin, err, records) => {
    metrics.errors.labels(plugin).inc(records.length);
    log.error("Error in audit plugin", err, {
      plugin,
      affected: records.length,
      events: records
        .slice(0, 10)
        .map(({ legacy }) => legacy)
        .join("\n"),
    });
  };
}

/** Sends the events to all backends; true when all accepted them. */
export function union(backends: readonly AuditBackend[]): AuditBackend {
  if (backends.length === 1) return backends[0]!;
  return {
    process(records) {
      const taken = backends.map((backend) => backend.process(records));
      if (!taken.some((one) => one instanceof Promise)) return taken.every(Boolean);
      return Promise.all(taken).then((all) => all.every(Boolean));
    },
    async stop(signal) {
      await Promise.all(backends.map((backend) => backend.stop(signal)));
    },
  };
}

/** Mode `blocking`: waits for the backend but ignores its failures. */
export function ignoringErrors(backend: AuditBackend): AuditBackend {
  return {
    process(records) {
      const taken = backend.process(records);
      return taken instanceof Promise ? taken.then(() => true) : true;
    },
    stop: (signal) => backend.stop(signal),
  };
}

interface TruncateOptions {
  /** API version in which sizes are measured. */
  readonly version: AuditVersion;
  readonly maxEventBytes: number;
  readonly maxBatchBytes: number;
}

/** Removes the objects from events that are too large, drops events that still are, and splits batches. */
export function truncating(backend: AuditBackend, options: TruncateOptions, fail: PluginError): AuditBackend {
  return {
    process(records) {
      const batches: AuditRecord[][] = [];
      let batch: AuditRecord[] = [];
      let batchBytes = 0;
      for (const whole of records) {
        let record = whole;
        let size = sizeOf(record, options.version);
        if (size > options.maxEventBytes && levels.indexOf(record.level) >= levels.indexOf("Request")) {
          record = record.truncated();
          size = sizeOf(record, options.version);
        }
        if (size > options.maxEventBytes) {
          fail("truncate", new Error("event is too large even after truncating"), [record]);
          continue;
        }
        if (batch.length > 0 && batchBytes + size > options.maxBatchBytes) {
          batches.push(batch);
          batch = [];
          batchBytes = 0;
        }
        batch.push(record);
        batchBytes += size;
      }
      if (batch.length > 0) batches.push(batch);
      const taken = batches.map((one) => backend.process(one));
      if (!taken.some((one) => one instanceof Promise)) return taken.every(Boolean);
      return Promise.all(taken).then((all) => all.every(Boolean));
    },
    stop: (signal) => backend.stop(signal),
  };
}

/** Serialized size in bytes of a single event, including the newline. */
function sizeOf(record: AuditRecord, version: AuditVersion): number {
  return eventJson(record, version).length + 1;
}

interface BatchOptions {
  readonly bufferSize: number;
  readonly maxBatchSize: number;
  readonly maxBatchWaitMs: number;
  readonly throttle: { readonly qps: number; readonly burst: number } | undefined;
  /** Sends the next batch without waiting for the previous one. */
  readonly concurrent: boolean;
}

/** Limit of object bytes in the buffer; beyond it, events are buffered without their objects. */
const maxBufferedBytes = 64 * 1024 * 1024;

/** Mode `batch`: buffers events until the batch is full or maxBatchWaitMs passed; drops events when the buffer is full. */
export function buffered(backend: AuditBackend, options: BatchOptions, clock: Clock, fail: PluginError): AuditBackend {
  const { bufferSize, maxBatchSize, maxBatchWaitMs, throttle, concurrent } = options;
  const bucket: TokenBucket = throttle === undefined ? unlimited : newTokenBucket({ ...throttle, clock });
  let waiting: AuditRecord[] = [];
  let waitingBytes = 0;
  let timer: Timer | undefined;
  let due = false;
  let stopped = false;
  let sending: Promise<void> | undefined;
  const open = new Set<Promise<unknown>>();

  const send = async (): Promise<void> => {
    while (waiting.length >= maxBatchSize || (waiting.length > 0 && (due || stopped))) {
      if (!stopped) await bucket.accept();
      const batch = waiting.slice(0, maxBatchSize);
      waiting = waiting.slice(batch.length);
      for (const { objectBytes } of batch) waitingBytes -= objectBytes;
      const taken = Promise.resolve(backend.process(batch)).catch((err: unknown) => fail("buffered", err, batch));
      open.add(taken);
      void taken.then(() => open.delete(taken));
      if (!concurrent) await taken;
    }
    due = false;
  };
  const wake = (): void => {
    if (sending !== undefined) return;
    sending = send().finally(() => {
      sending = undefined;
      timer?.cancel();
      timer = undefined;
      if (waiting.length > 0) schedule();
    });
  };
  const schedule = (): void => {
    if (waiting.length >= maxBatchSize || stopped) {
      wake();
      return;
    }
    timer ??= clock.after(maxBatchWaitMs, () => {
      timer = undefined;
      due = true;
      wake();
    });
  };

  return {
    process(records) {
      const room = stopped ? 0 : bufferSize - waiting.length;
      if (room < records.length) {
        const why = stopped ? "the audit buffer is closed" : "audit buffer queue blocked";
        fail("buffered", new Error(why), records.slice(room));
      }
      for (const record of records.slice(0, room)) {
        const kept = waitingBytes + record.objectBytes > maxBufferedBytes ? record.truncated() : record;
        waitingBytes += kept.objectBytes;
        waiting.push(kept);
      }
      if (waiting.length > 0) schedule();
      // The loss was counted; it must not fail the request.
      return true;
    },
    async stop(signal) {
      stopped = true;
      timer?.cancel();
      wake();
      const emptied = (async () => {
        while (sending !== undefined) await sending;
        await Promise.all(open);
      })();
      await Promise.race([emptied, whenAborted(signal)]);
      await backend.stop(signal);
    },
  };
}

function whenAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
