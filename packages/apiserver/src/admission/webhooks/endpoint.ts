/**
 * Endpoint of a webhook: a URL, or a service, whose certificate must be valid for `<name>.<namespace>.svc` whatever address
 * is dialed.
 * Source: k8s.io/apiserver pkg/util/webhook/client.go HookClient
 */
import type { WebhookClientConfig } from "@coxswain/apimachinery/objects/schema/kinds/admissionregistration/v1";

/** Resolves a service to an address to dial. @throws Error when it cannot be resolved. */
export type ResolveService = (namespace: string, name: string, port: number) => { readonly host: string; readonly port: number };

export interface Endpoint {
  readonly url: URL;
  /** Host with port, also when the URL has no explicit port. */
  readonly hostPort: string;
  /** Resolves the address to dial when it differs from the URL's host. */
  readonly locate: (() => ReturnType<ResolveService>) | undefined;
}

const httpsPort = 443;

/** @throws Error when the configuration has neither a URL nor a service. */
export function endpointOf(config: WebhookClientConfig, resolve: ResolveService): Endpoint {
  if (config.url !== undefined) {
    const url = new URL(config.url);
    return { url, hostPort: url.port === "" ? `${url.hostname}:${httpsPort}` : url.host, locate: undefined };
  }
  if (config.service === undefined) throw new Error("webhook configuration must have either service or URL");
  const { namespace, name, path, port = httpsPort } = config.service;
  const hostPort = `${name}.${namespace}.svc:${port}`;
  const url = new URL(`https://${hostPort}`);
  url.pathname = path ?? "/";
  return { url, hostPort, locate: () => resolve(namespace, name, port) };
}
