/**
 * Asks one webhook: an AdmissionReview over HTTPS to a URL or a service. The certificate is always verified, redirects
 * are not followed, and an answer has a size and a time that it must keep to.
 * Source: k8s.io/apiserver pkg/util/webhook/client.go, pkg/admission/plugin/webhook/request/admissionreview.go
 */
import { randomUUID } from "node:crypto";
import { Agent, request as httpsRequest } from "node:https";
import { isIPv6, type LookupFunction } from "node:net";
import { parseJson } from "@coxswain/apimachinery/codec/json";
import type { KubeObject, Status } from "@coxswain/apimachinery/meta/types";
import type { WebhookClientConfig } from "@coxswain/apimachinery/schema/kinds/admissionregistration/v1";
import type { AdmissionAttributes } from "./plugin.ts";
import type { ResourceVersion } from "./webhook-matcher.ts";

export interface WebhookTarget {
  readonly clientConfig: WebhookClientConfig;
  readonly admissionReviewVersions?: readonly string[];
  readonly timeoutSeconds?: number;
}

export interface WebhookAnswer {
  readonly allowed: boolean;
  readonly status: Status | undefined;
  readonly patch: Buffer | undefined;
  readonly warnings: readonly string[];
}

export interface ServiceAddress {
  readonly address: string;
}

/** @returns the cluster IP of a service. @throws Error when there is no such service or it has none. */
export type ServiceResolver = (namespace: string, name: string, port: number) => ServiceAddress;

const longestAnswerBytes = 16 * 1024 * 1024;
const defaultTimeoutSeconds = 10;
const idleMs = 90_000;

export interface WebhookClient {
  /** @throws Error when there was no usable answer; whether that matters is for the failure policy. */
  review(webhook: WebhookTarget, review: object, expectsPatch: boolean, signal: AbortSignal): Promise<WebhookAnswer>;
}

/** The question, in the version that the webhook understands. */
export function newReview(
  webhook: WebhookTarget,
  attributes: AdmissionAttributes,
  target: ResourceVersion,
  objects: { object: KubeObject | undefined; oldObject: KubeObject | undefined },
): object {
  const versions = webhook.admissionReviewVersions ?? ["v1"];
  const version = versions.find((candidate) => candidate === "v1" || candidate === "v1beta1");
  if (version === undefined) throw new Error(`unexpected admission review versions: ${versions.join(",")}`);
  const { kind, resource, subresource, user, options } = attributes;
  return {
    kind: "AdmissionReview",
    apiVersion: `admission.k8s.io/${version}`,
    request: {
      uid: randomUUID(),
      kind: { group: target.group, version: target.version, kind: target.kind },
      resource: { group: target.group, version: target.version, resource: target.resource },
      ...(subresource === "" ? {} : { subResource: subresource }),
      requestKind: { group: kind.group, version: kind.version, kind: kind.kind },
      requestResource: { group: resource.group, version: resource.version, resource: resource.resource },
      ...(subresource === "" ? {} : { requestSubResource: subresource }),
      ...(attributes.name === "" ? {} : { name: attributes.name }),
      ...(attributes.namespace === "" ? {} : { namespace: attributes.namespace }),
      operation: attributes.operation,
      userInfo: {
        username: user.name,
        ...(user.uid === undefined ? {} : { uid: user.uid }),
        ...(user.groups.length === 0 ? {} : { groups: user.groups }),
        ...(user.extra === undefined ? {} : { extra: user.extra }),
      },
      object: objects.object ?? null,
      oldObject: objects.oldObject ?? null,
      dryRun: attributes.dryRun,
      options: options ?? null,
    },
  };
}

export function newWebhookClient(resolve: ServiceResolver): WebhookClient {
  const agents = new Map<string, Agent>();
  const agentFor = (caBundle: string | undefined): Agent => {
    const key = caBundle ?? "";
    let agent = agents.get(key);
    if (agent === undefined) {
      agent = new Agent({
        keepAlive: true,
        timeout: idleMs,
        ...(caBundle === undefined ? {} : { ca: Buffer.from(caBundle, "base64") }),
      });
      // Bundles change when certificates are renewed; old ones are not used again.
      if (agents.size > 200) agents.clear();
      agents.set(key, agent);
    }
    return agent;
  };
  return {
    async review(webhook, review, expectsPatch, signal) {
      const { clientConfig } = webhook;
      const { url, lookup } = endpointOf(clientConfig, resolve);
      const timeoutSeconds = webhook.timeoutSeconds ?? defaultTimeoutSeconds;
      url.searchParams.set("timeout", `${timeoutSeconds}s`);
      const body = JSON.stringify(review);
      const answer = await post(url, body, agentFor(clientConfig.caBundle), lookup, timeoutSeconds * 1000, signal);
      return readAnswer(answer, review as { apiVersion: string; request: { uid: string } }, expectsPatch);
    },
  };
}

/** A service is dialled at its cluster IP and must show a certificate for `<name>.<namespace>.svc`. */
function endpointOf(config: WebhookClientConfig, resolve: ServiceResolver): { url: URL; lookup: LookupFunction | undefined } {
  if (config.url !== undefined) return { url: new URL(config.url), lookup: undefined };
  const { service } = config;
  if (service === undefined) throw new Error("webhook has neither url nor service");
  const port = service.port ?? 443;
  const { address } = resolve(service.namespace, service.name, port);
  const url = new URL(`https://${service.name}.${service.namespace}.svc:${port}`);
  url.pathname = service.path ?? "/";
  const family = isIPv6(address) ? 6 : 4;
  const lookup: LookupFunction = (_host, options, done) =>
    options.all === true ? done(null, [{ address, family }]) : done(null, address, family);
  return { url, lookup };
}

function post(
  url: URL,
  body: string,
  agent: Agent,
  lookup: LookupFunction | undefined,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<Buffer> {
  const what = `Post "${url.href}"`;
  return new Promise((resolve, reject) => {
    const fail = (err: Error): void => {
      reject(new Error(`failed to call webhook: ${what}: ${textOf(err)}`, { cause: err }));
    };
    const request = httpsRequest(
      url,
      {
        method: "POST",
        agent,
        signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
        headers: {
          "content-type": "application/json",
          accept: "application/json, */*",
          "content-length": Buffer.byteLength(body),
        },
        ...(lookup === undefined ? {} : { lookup }),
      },
      (response) => {
        const chunks: Buffer[] = [];
        let size = 0;
        response.on("data", (chunk: Buffer) => {
          size += chunk.length;
          if (size > longestAnswerBytes) request.destroy(new Error("the answer is too large"));
          else chunks.push(chunk);
        });
        response.once("error", fail);
        response.once("end", () => {
          const status = response.statusCode ?? 0;
          if (status !== 200)
            return reject(new Error("failed to call webhook: the server rejected our request for an unknown reason"));
          resolve(Buffer.concat(chunks));
        });
      },
    );
    request.once("error", fail);
    request.end(body);
  });
}

/** Failures of connections as upstream's users know them. */
function textOf(err: Error & { code?: string; address?: string; port?: number }): string {
  if (err.name === "TimeoutError" || err.name === "AbortError") return "context deadline exceeded";
  switch (err.code) {
    case "ECONNREFUSED":
      return `dial tcp ${err.address}:${err.port}: connect: connection refused`;
    case "UNABLE_TO_VERIFY_LEAF_SIGNATURE":
    case "SELF_SIGNED_CERT_IN_CHAIN":
    case "DEPTH_ZERO_SELF_SIGNED_CERT":
    case "UNABLE_TO_GET_ISSUER_CERT_LOCALLY":
      return "x509: certificate signed by unknown authority";
    case "CERT_HAS_EXPIRED":
    case "CERT_NOT_YET_VALID":
      return "x509: certificate has expired or is not yet valid";
    default:
      return err.message;
  }
}

interface ReviewAnswer {
  kind?: string;
  apiVersion?: string;
  response?: { uid?: string; allowed?: boolean; status?: Status; patch?: string; patchType?: string; warnings?: string[] };
}

function readAnswer(body: Buffer, asked: { apiVersion: string; request: { uid: string } }, expectsPatch: boolean): WebhookAnswer {
  const review = parseJson(body) as ReviewAnswer | null;
  const response = review?.response;
  if (typeof response !== "object" || response === null) throw new Error("webhook response was absent");
  const isV1 = asked.apiVersion === "admission.k8s.io/v1";
  if (isV1) {
    if (response.uid !== asked.request.uid)
      throw new Error(`expected response.uid=${JSON.stringify(asked.request.uid)}, got ${JSON.stringify(response.uid ?? "")}`);
    if (review?.apiVersion !== asked.apiVersion || review.kind !== "AdmissionReview") {
      throw new Error(
        `expected webhook response of ${asked.apiVersion}, Kind=AdmissionReview, got ${review?.apiVersion ?? ""}, Kind=${review?.kind ?? ""}`,
      );
    }
    if (!expectsPatch && (response.patch !== undefined || response.patchType !== undefined)) {
      throw new Error("validating webhook may not return a patch");
    }
    if (response.patch !== undefined && response.patchType !== "JSONPatch")
      throw new Error("webhook returned response.patch but not a patchType of JSONPatch");
  }
  const patch = response.patch ? Buffer.from(response.patch, "base64") : undefined;
  return { allowed: response.allowed === true, status: response.status, patch, warnings: response.warnings ?? [] };
}
