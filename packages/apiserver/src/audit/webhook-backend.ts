/**
 * Sends events as EventList to the server of a kubeconfig. Failed requests are retried, five attempts in all, with backoff
 * factor 1.5.
 * Source: k8s.io/apiserver plugin/pkg/audit/webhook, pkg/util/webhook/webhook.go
 */
import { type ClientConfig, userAgentOf } from "@coxswain/apimachinery/client/config";
import { newCredentials } from "@coxswain/apimachinery/client/credentials";
import { newTransport, readBody } from "@coxswain/apimachinery/client/transport";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Connect } from "@coxswain/apimachinery/transport/connect";
import type { AuditBackend, PluginError } from "./backend.ts";
import type { AuditRecord, AuditVersion } from "./event.ts";

interface WebhookBackendOptions {
  readonly client: ClientConfig;
  readonly initialBackoffMs: number;
  readonly version: AuditVersion;
  /** Dialer for the server; undefined: direct. */
  readonly connect?: Connect | undefined;
}

const plugin = "webhook";
const attempts = 5;
const backoffFactor = 1.5;
const backoffJitter = 0.2;
const requestTimeoutMs = 30_000;

export function newWebhookBackend(
  { client, initialBackoffMs, version, connect }: WebhookBackendOptions,
  clock: Clock,
  fail: PluginError,
): AuditBackend {
  const transport = newTransport(client, { clock, certificate: () => credentials.certificate(), connect });
  const credentials = newCredentials(client, clock, () => transport.reconnect());
  const path = pathOf(client.host);
  const stopping = new AbortController();

  const post = async (body: Buffer): Promise<void> => {
    const headers = {
      accept: "application/json, */*",
      "content-type": "application/json",
      "user-agent": client.userAgent ?? userAgentOf("kube-apiserver"),
      ...(await credentials.headers()),
    };
    const response = await transport.request({
      method: "POST",
      path,
      headers,
      body,
      signal: AbortSignal.any([stopping.signal, AbortSignal.timeout(requestTimeoutMs)]),
    });
    const answer = await readBody(response);
    if (response.status < 200 || response.status > 206) {
      if (response.status === 401) credentials.rejected(headers);
      throw new Error(`the webhook answered ${response.status}: ${answer.toString("utf8").slice(0, 2048)}`);
    }
  };

  return {
    async process(records) {
      const body = eventList(records, version);
      let delayMs = initialBackoffMs;
      for (let attempt = 1; ; attempt++) {
        try {
          await post(body);
          return true;
        } catch (err) {
          if (attempt === attempts || stopping.signal.aborted) {
            fail(plugin, err, records);
            return false;
          }
        }
        await clock.sleep(delayMs * (1 + Math.random() * backoffJitter), stopping.signal).catch(() => {});
        delayMs *= backoffFactor;
      }
    },
    async stop() {
      stopping.abort(new Error("the server has stopped"));
      transport.close();
    },
  };
}

function eventList(records: readonly AuditRecord[], version: AuditVersion): Buffer {
  const items = records.flatMap((record, at) => [at === 0 ? Buffer.alloc(0) : comma, record.item(version)]);
  const head = `{"kind":"EventList","apiVersion":"${version}","metadata":{},"items":[`;
  return Buffer.concat([Buffer.from(head), ...items, Buffer.from("]}\n")]);
}

const comma = Buffer.from(",");

function pathOf(host: string): string {
  const url = new URL(host);
  url.searchParams.set("timeout", `${requestTimeoutMs / 1000}s`);
  return `${url.pathname}${url.search}`;
}
