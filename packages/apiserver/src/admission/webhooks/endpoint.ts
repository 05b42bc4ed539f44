/**
 * Where a webhook is: at its URL, or at a service, which is dialled at its cluster IP and has to show a certificate for
 * `<name>.<namespace>.svc`.
 * Source: k8s.io/apiserver pkg/util/webhook/client.go, kube-aggregator pkg/apiserver/resolvers.go, pkg/util/proxy/proxy.go
 */
import { lookup as lookupDns } from "node:dns";
import { isIP, isIPv6, type LookupFunction } from "node:net";
import { goQuote } from "@coxswain/apimachinery/meta/go-quote";
import type { WebhookClientConfig } from "@coxswain/apimachinery/schema/kinds/admissionregistration/v1";
import type { Service } from "@coxswain/apimachinery/schema/kinds/core/v1";

export interface Endpoint {
  readonly url: URL;
  /** How the URL's host is found, where that is not by its name. */
  readonly lookup: LookupFunction | undefined;
  /** With the port, whether it is written or not. */
  readonly hostPort: string;
}

const httpsPort = 443;

/** @throws Error when there is no way there. */
export function endpointOf(
  config: WebhookClientConfig,
  serviceNamed: (namespace: string, name: string) => Service | undefined,
): Endpoint {
  if (config.url !== undefined) {
    const url = new URL(config.url);
    return { url, lookup: undefined, hostPort: url.port === "" ? `${url.hostname}:${httpsPort}` : url.host };
  }
  if (config.service === undefined) throw new Error("webhook configuration must have either service or URL");
  const { namespace, name, path, port = httpsPort } = config.service;
  const found = serviceNamed(namespace, name);
  if (found === undefined) throw new Error(`service ${goQuote(name)} not found`);
  const host = `${name}.${namespace}.svc`;
  const url = new URL(`https://${host}:${port}`);
  url.pathname = path ?? "/";
  return { url, lookup: lookupOf(addressOf(found, name, port)), hostPort: `${host}:${port}` };
}

function addressOf({ spec }: Service, name: string, port: number): string {
  const type = spec?.type ?? "ClusterIP";
  if (type === "ExternalName") return spec?.externalName ?? "";
  const { clusterIP } = spec ?? {};
  if (type === "ClusterIP" && clusterIP === "None") throw new Error('cannot route to service with ClusterIP "None"');
  if (!spec?.ports?.some((candidate) => candidate.port === port)) {
    throw new Error(`no service port ${port} found for service ${goQuote(name)}`);
  }
  if (!clusterIP) throw new Error(`service ${goQuote(name)} has no cluster IP`);
  return clusterIP;
}

function lookupOf(address: string): LookupFunction {
  if (isIP(address) === 0) return (_host, options, done) => lookupDns(address, options, done);
  const family = isIPv6(address) ? 6 : 4;
  return (_host, options, done) => (options.all === true ? done(null, [{ address, family }]) : done(null, address, family));
}
