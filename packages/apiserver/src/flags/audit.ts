import { bool, duration, float, int, string } from "@coxswain/apimachinery/flags/types";

/** Audit events and where they are written. */

export const auditFlags = {
  "audit-log-batch-buffer-size": int({
    default: 10000,
    help: "The size of the buffer of events before batching and writing. Only used in batch mode.",
  }),
  "audit-log-batch-max-size": int({ default: 1, help: "The largest size of a batch. Only used in batch mode." }),
  "audit-log-batch-max-wait": duration({
    help: "How long to wait before a batch that has not reached its largest size is written. Only used in batch mode.",
  }),
  "audit-log-batch-throttle-burst": int({
    help: "How many requests may be sent at once when throttling was not used before. Only used in batch mode.",
  }),
  "audit-log-batch-throttle-enable": bool({ help: "Whether batches are throttled. Only used in batch mode." }),
  "audit-log-batch-throttle-qps": float({
    help: "Largest average number of batches a second. Only used in batch mode.",
  }),
  "audit-log-compress": bool({ help: "If set, rotated log files are compressed with gzip." }),
  "audit-log-format": string({
    default: "json",
    help: "Format of saved audits: 'legacy' is one line of text for each event, 'json' structured JSON.",
  }),
  "audit-log-maxage": int({
    help: "The largest number of days to keep old audit log files, by the date in their name.",
  }),
  "audit-log-maxbackup": int({ help: "The largest number of old audit log files to keep. 0 means no limit." }),
  "audit-log-maxsize": int({ help: "The size in megabytes at which the audit log file is rotated." }),
  "audit-log-mode": string({
    default: "blocking",
    help: "Strategy for sending audit events: blocking answers wait for the write, batch writes in the background, blocking-strict fails the request when its first event cannot be written. Known modes are batch,blocking,blocking-strict.",
  }),
  "audit-log-path": string({
    help: "If set, all requests to the API server are logged to this file. '-' means standard out.",
  }),
  "audit-log-truncate-enabled": bool({ help: "Whether events and batches are cut." }),
  "audit-log-truncate-max-batch-size": int({
    default: 10485760,
    help: "Largest size in bytes of a batch sent to the backend; a larger one is split.",
  }),
  "audit-log-truncate-max-event-size": int({
    default: 102400,
    help: "Largest size in bytes of an event; the first request and response are left out of a larger one, and if it is still too large it is dropped.",
  }),
  "audit-log-version": string({
    default: "audit.k8s.io/v1",
    help: "API group and version used for serializing audit events written to log.",
  }),
  "audit-policy-file": string({ help: "Path to the file that defines the audit policy." }),
  "audit-webhook-batch-buffer-size": int({
    default: 10000,
    help: "The size of the buffer of events before batching and sending. Only used in batch mode.",
  }),
  "audit-webhook-batch-initial-backoff": duration({
    default: "10s",
    hidden: true,
    deprecated: "will be removed in a future version.",
    help: "How long to wait before the first retry of a failed request.",
  }),
  "audit-webhook-batch-max-size": int({
    default: 400,
    help: "The largest size of a batch. Only used in batch mode.",
  }),
  "audit-webhook-batch-max-wait": duration({
    default: "30s",
    help: "How long to wait before a batch that has not reached its largest size is sent. Only used in batch mode.",
  }),
  "audit-webhook-batch-throttle-burst": int({
    default: 15,
    help: "How many requests may be sent at once when throttling was not used before. Only used in batch mode.",
  }),
  "audit-webhook-batch-throttle-enable": bool({
    default: true,
    help: "Whether batches are throttled. Only used in batch mode.",
  }),
  "audit-webhook-batch-throttle-qps": float({
    default: 10,
    help: "Largest average number of batches a second. Only used in batch mode.",
  }),
  "audit-webhook-config-file": string({
    help: "Path to a kubeconfig file with the configuration of the audit webhook.",
  }),
  "audit-webhook-initial-backoff": duration({
    default: "10s",
    help: "How long to wait before the first retry of a failed request.",
  }),
  "audit-webhook-mode": string({
    default: "batch",
    help: "Strategy for sending audit events: blocking answers wait for the webhook, batch sends in the background. Known modes are batch,blocking,blocking-strict.",
  }),
  "audit-webhook-truncate-enabled": bool({ help: "Whether events and batches are cut." }),
  "audit-webhook-truncate-max-batch-size": int({
    default: 10485760,
    help: "Largest size in bytes of a batch sent to the backend; a larger one is split.",
  }),
  "audit-webhook-truncate-max-event-size": int({
    default: 102400,
    help: "Largest size in bytes of an event; the first request and response are left out of a larger one, and if it is still too large it is dropped.",
  }),
  "audit-webhook-version": string({
    default: "audit.k8s.io/v1",
    help: "API group and version used for serializing audit events sent to the webhook.",
  }),
};
