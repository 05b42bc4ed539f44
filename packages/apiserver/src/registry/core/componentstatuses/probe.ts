import type { IncomingMessage } from "node:http";
import { request as requestHttps } from "node:https";
import { parseJsonText } from "@coxswain/apimachinery/objects/codec/json-parse";
import { dialErrorText } from "@coxswain/apimachinery/objects/errors/dial-error";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { plainError } from "@coxswain/apimachinery/objects/errors/status-error";
import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";
import type { ComponentStatus } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { request as requestHttp } from "@coxswain/apimachinery/transport/node-http";
import type { CatalogueConfig } from "../../config.ts";
import type { SubresourceDefinition } from "../../generic/resource.ts";

interface Component {
  readonly name: string;
  readonly url: URL;
  readonly tls?: { readonly ca?: Buffer | undefined; readonly cert?: Buffer | undefined; readonly key?: Buffer | undefined };
  /** Checks the body of a 200 response. @returns an error text, or undefined when healthy */
  check?(body: string): string | undefined;
}

/**
 * Health of the control plane components, at their default loopback addresses, and of all etcd servers. Not stored: each
 * request probes them.
 * Source: pkg/registry/core/rest/storage_core.go, pkg/registry/core/componentstatus/{rest,validator}.go
 */
export function componentStatusSubresource(etcd: CatalogueConfig["etcd"]): SubresourceDefinition {
  const components: readonly Component[] = [
    { name: "controller-manager", url: new URL("https://127.0.0.1:10257/healthz") },
    { name: "scheduler", url: new URL("https://127.0.0.1:10259/healthz") },
    ...(etcd?.servers ?? []).map((server, i) => ({
      name: `etcd-${i}`,
      url: new URL("/health", server),
      ...(etcd?.tls !== undefined && { tls: etcd.tls }),
      check: etcdFault,
    })),
  ];
  return {
    kind: "ComponentStatus",
    verbs: ["get", "list"],
    handler: {
      type: "object",
      list: () => Promise.all(components.map(statusOf)),
      async get({ name }) {
        const component = components.find((one) => one.name === name);
        if (component === undefined) throw plainError(`Component not found: ${name}`);
        return statusOf(component);
      },
    },
  };
}

/**
 * etcd responds with 200 and `{"health":"true"}` or `{"health":"false"}`.
 * Source: k8s.io/apiserver pkg/storage/etcd3/healthcheck.go
 */
function etcdFault(body: string): string | undefined {
  try {
    const { health = "" }: { health?: unknown } = parseJsonText(body) ?? {};
    return health === "true" || health === true ? undefined : `Unhealthy status: ${String(health)}`;
  } catch (err) {
    return messageOf(err);
  }
}

async function statusOf(component: Component): Promise<ComponentStatus> {
  const { healthy, message, error } = await probe(component);
  return {
    kind: "ComponentStatus",
    apiVersion: "v1",
    metadata: { name: component.name },
    conditions: [
      {
        type: "Healthy",
        status: healthy ? "True" : "False",
        ...(message !== "" && { message }),
        ...(error !== "" && { error }),
      },
    ],
  };
}

const timeoutMs = 20_000;
const longestBody = 10 * 1024;

interface Answer {
  readonly healthy: boolean;
  readonly message: string;
  readonly error: string;
}

async function probe({ url, tls, check }: Component): Promise<Answer> {
  try {
    const { code, body } = await get(url, tls);
    if (code < 200 || code >= 400) return { healthy: false, message: `HTTP probe failed with statuscode: ${code}`, error: "" };
    const fault = check?.(body);
    return { healthy: fault === undefined, message: body, error: fault ?? "" };
  } catch (err) {
    return { healthy: false, message: `Get ${goQuote(url.href)}: ${dialErrorText(err)}`, error: "" };
  }
}

/** Certificates are not verified: those of the components are self-signed, and health responses are not confidential. */
function get(url: URL, tls: Component["tls"]): Promise<{ code: number; body: string }> {
  return new Promise((resolve, reject) => {
    const options = { timeout: timeoutMs, agent: false, rejectUnauthorized: false, ...tls };
    const sent = (url.protocol === "https:" ? requestHttps : requestHttp)(url, options, (response: IncomingMessage) => {
      let body = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        if (body.length < longestBody) body += chunk;
      });
      response.on("end", () => resolve({ code: response.statusCode ?? 0, body: body.slice(0, longestBody) }));
      response.on("error", reject);
    });
    sent.on("timeout", () => sent.destroy(new Error("context deadline exceeded")));
    sent.on("error", reject);
    sent.end();
  });
}
