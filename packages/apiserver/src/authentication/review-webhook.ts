/**
 * Posts reviews (TokenReview, SubjectAccessReview) to the server of a kubeconfig, with exponential backoff on retriable
 * errors.
 * Source: k8s.io/apiserver pkg/util/webhook/webhook.go, pkg/util/webhook/validation.go
 */

import { readFileSync } from "node:fs";
import { dirname } from "node:path";
import type { ClientObserver } from "@coxswain/apimachinery/client/client";
import { newClient } from "@coxswain/apimachinery/client/client";
import type { ClientConfig } from "@coxswain/apimachinery/client/config";
import { parseKubeconfig } from "@coxswain/apimachinery/client/kubeconfig";
import { withReviewRetries } from "@coxswain/apimachinery/client/retry";
import { parseJson } from "@coxswain/apimachinery/objects/codec/json";
import { failureIn, genericServerResponse, StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import { isJsonObject } from "@coxswain/apimachinery/objects/meta/json-value";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { errorCode } from "@coxswain/apimachinery/process/narrowing/error-code";
import type { Connect } from "@coxswain/apimachinery/transport/connect";

interface ReviewWebhookOptions {
  readonly config: ClientConfig;
  readonly clock: Clock;
  /** Aborts requests and backoff when the server stops. */
  readonly signal: AbortSignal;
  readonly observer?: ClientObserver | undefined;
  /** Dialer for the webhook; undefined: direct. */
  readonly connect?: Connect | undefined;
}

interface Review {
  readonly apiVersion: string;
  readonly kind: string;
}

/**
 * @returns the `status` of the response, `{}` when it has none
 * @throws StatusError for an error response, Error when the connection fails
 */
export type ReviewWebhook = (review: Review) => Promise<Record<string, unknown>>;

/**
 * Reads the kubeconfig of a webhook and checks that the files it references exist.
 * @throws Error when a file cannot be read or the kubeconfig is invalid
 */
export function loadWebhookConfig(path: string): ClientConfig {
  const config = parseKubeconfig(readText(path), { directory: dirname(path) });
  for (const file of [config.caFile, config.certFile, config.keyFile]) if (file !== undefined) readText(file);
  return config;
}

/** @throws Error with Go's text: `stat /x: no such file or directory`. */
function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (err) {
    if (errorCode(err) === "ENOENT") throw new Error(`stat ${path}: no such file or directory`);
    throw err;
  }
}

const requestTimeoutMs = 30_000;

export function newReviewWebhook({ config, clock, signal, observer, connect }: ReviewWebhookOptions): ReviewWebhook {
  // No client-side rate limit: the number of calls is bounded by the limits on incoming requests.
  const client = newClient(
    { ...config, qps: -1, userAgent: config.userAgent ?? "kube-apiserver" },
    { clock, connect, ...(observer && { observer }) },
  );
  signal.addEventListener("abort", () => client.close(), { once: true });
  const path = `${new URL(config.host).pathname === "/" ? "/" : ""}?timeout=${requestTimeoutMs / 1000}s`;
  const post = async (review: Review): Promise<Record<string, unknown>> => {
    const response = await client.raw("POST", path, {
      headers: { accept: "application/json, */*", "content-type": "application/json" },
      body: JSON.stringify(review),
      signal: AbortSignal.any([signal, AbortSignal.timeout(requestTimeoutMs)]),
    });
    if (response.status < 200 || response.status > 206)
      throw failureOf(response.status, response.headers["retry-after"], response.body);
    return statusIn(response.body, review);
  };
  return (review) => withReviewRetries(() => post(review), clock, signal);
}

function failureOf(code: number, retryAfter: string | string[] | undefined, body: Buffer): StatusError {
  const text = body.toString("utf8");
  try {
    const status = failureIn(parseJson(body));
    if (status !== undefined) return new StatusError(status);
  } catch {
    // The response is not a Status.
  }
  const seconds = Number(retryAfter);
  return genericServerResponse(code, "POST", { group: "", resource: "" }, "", text, Number.isFinite(seconds) ? seconds : 0, true);
}

interface ReviewAnswer {
  readonly apiVersion?: unknown;
  readonly kind?: unknown;
  readonly status?: unknown;
}

/** Checks that the response has the type of the request, if it states one, and returns its status. */
function statusIn(body: Buffer, requested: Review): Record<string, unknown> {
  const answer = parseJson(body);
  if (!isJsonObject(answer)) {
    throw new Error(`the webhook's answer is not a ${requested.kind}`);
  }
  const { apiVersion = requested.apiVersion, kind = requested.kind, status = {} }: ReviewAnswer = answer;
  if (apiVersion !== requested.apiVersion || kind !== requested.kind) {
    throw new Error(
      `the webhook answered ${String(kind)} of ${String(apiVersion)}, expected ${requested.kind} of ${requested.apiVersion}`,
    );
  }
  if (status === null) return {};
  if (!isJsonObject(status)) throw new Error(`the status of the webhook's ${requested.kind} is no object`);
  return status;
}
