/**
 * Where a webhook is: at its URL, or at a service, which has to show a certificate for `<name>.<namespace>.svc` wherever it
 * is dialled.
 * Source: k8s.io/apiserver pkg/util/webhook/client.go HookClient
 */
import type { WebhookClientConfig } from "@coxswain/apimachinery/schema/kinds/admissionregistration/v1";

/** Where requests for a service go. @throws Error when there is no way there. */
export type ResolveService = (namespace: string, name: string, port: number) => { readonly host: string; readonly port: number };

export interface Endpoint {
  readonly url: URL;
  /** With the port, whether it is written or not. */
  readonly hostPort: string;
  /** Where the URL's host is, when that is not told by its name. */
  readonly locate: (() => ReturnType<ResolveService>) | undefined;
}

const httpsPort = 443;

/** @throws Error when it is neither. */
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
