/**
 * From flags to a checked configuration: files are read, values are checked against each other. Settings that cannot be honoured end the
 * start with a clear error.
 * Source: cmd/kube-apiserver/app/options/validation.go, pkg/kubeapiserver/options
 */

import { readFileSync } from "node:fs";
import { isIP, isIPv6 } from "node:net";
import { hostname, networkInterfaces } from "node:os";
import { newRuleCheck } from "@coxswain/apimachinery/flags/rule-check";
import { ConfigError } from "@coxswain/apimachinery/flags/run-main";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";
import { parseBundle } from "@coxswain/apimachinery/serving/authentication/x509";
import { opensslCiphers } from "@coxswain/apimachinery/serving/tls-options";
import { type PluginSelection, selectPlugins } from "./admission/catalogue.ts";
import { type PluginConfigurations, readPluginConfigurations } from "./admission/configuration.ts";
import { readKeyPair } from "./aggregation/proxy-certificate.ts";
import type { TokenWebhookOptions } from "./authentication/build.ts";
import { checkOidcOptions, type OidcOptions } from "./authentication/oidc.ts";
import { loadWebhookConfig } from "./authentication/review-webhook.ts";
import { checkTokenWebhookVersion } from "./authentication/webhook.ts";
import { type AbacPolicies, loadAbacPolicies } from "./authorization/abac.ts";
import type { AuthorizationWebhookOptions } from "./authorization/build.ts";
import { checkAuthorizationWebhookVersion } from "./authorization/webhook.ts";
import { type ProxyServers, readEgressConfiguration } from "./egress/configuration.ts";
import { originPatterns } from "./filters/cors.ts";
import { type ApiserverFlags, flagTable } from "./flags.ts";
import { type IsServed, readRuntimeConfig } from "./server/runtime-config.ts";
import { type Encryption, readEncryptionConfig } from "./storage/etcd/encryption-config.ts";

export interface ApiserverConfig {
  readonly flags: ApiserverFlags;
  /** Address of this server in the endpoints of the Service `kubernetes`. */
  readonly advertiseAddress: string;
  /** One or two CIDRs, the primary one first. */
  readonly serviceClusterIpRange: readonly string[];
  readonly nodePortRange: { readonly from: number; readonly to: number };
  readonly authorizationModes: readonly string[];
  /** Policies of the mode ABAC. */
  readonly abac: AbacPolicies;
  readonly authorizationWebhook: AuthorizationWebhookOptions | undefined;
  readonly oidc: OidcOptions | undefined;
  readonly tokenWebhook: TokenWebhookOptions | undefined;
  readonly apiAudiences: readonly string[];
  readonly plugins: PluginSelection;
  /** --admission-control-config-file */
  readonly pluginConfigurations: PluginConfigurations;
  readonly etcdTls: { readonly ca: Buffer | undefined; readonly cert: Buffer | undefined; readonly key: Buffer | undefined };
  readonly etcdOverrides: readonly { group: string; resource: string; servers: readonly string[] }[];
  /** --encryption-provider-config; undefined: objects are stored unencrypted. */
  readonly encryption: Encryption | undefined;
  /** --watch-cache-sizes, and 0 for resources that have no cache by default. Keys: `resource` or `resource.group`. */
  readonly watchCacheSizes: ReadonlyMap<string, number>;
  readonly kubelet: {
    readonly certificateAuthority: Buffer | undefined;
  };
  /** The proxies of --egress-selector-config-file. */
  readonly egress: ProxyServers;
  /** --runtime-config: whether a version is served, given its default. */
  readonly served: IsServed;
}

const knownModes = ["AlwaysAllow", "AlwaysDeny", "ABAC", "Webhook", "RBAC", "Node"];

/** @throws ConfigError listing every problem */
export function configFromFlags(flags: ApiserverFlags): ApiserverConfig {
  const rules = newRuleCheck(flagTable.table, flags);
  const problems = flagProblems(flags, rules);
  const config = readConfig(flags, problems);
  problems.push(...rules.others(), ...configProblems(config));
  if (problems.length > 0) throw new ConfigError(problems.length === 1 ? problems[0] : `[${problems.join(", ")}]`);
  return config;
}

/** Problems that need no file, in upstream's order. */
function flagProblems(flags: ApiserverFlags, rules: ReturnType<typeof newRuleCheck>): string[] {
  const servicePort = flags["kubernetes-service-node-port"];
  const { first, last } = flags["service-node-port-range"];
  return [
    ...rules.of("etcd-servers", "secure-port", "max-requests-inflight", "max-mutating-requests-inflight"),
    ...thrownBy(() => opensslCiphers(flags["tls-cipher-suites"])),
    ...serviceAccountProblems(flags),
    ...rules.of("service-account-max-token-expiration", "service-account-jwks-uri", "goaway-chance", "request-timeout"),
    ...unless(
      (flags["tls-cert-file"] === "") === (flags["tls-private-key-file"] === ""),
      "--tls-cert-file and --tls-private-key-file must be specified together",
    ),
    ...rules.of("storage-backend", "storage-media-type", "endpoint-reconciler-type", "apiserver-count"),
    ...rules.of("kubernetes-service-node-port"),
    ...unless(
      servicePort <= 0 || (servicePort >= first && servicePort <= last),
      `kubernetes service port range ${first}-${last} doesn't contain ${servicePort}`,
    ),
    ...authorizationProblems(flags),
    ...unless(
      (flags["oidc-issuer-url"] === "") === (flags["oidc-client-id"] === ""),
      "oidc-issuer-url and oidc-client-id should be specified together",
    ),
  ];
}

/** @param problems receives the error of every value that cannot be read; a placeholder takes its place */
function readConfig(flags: ApiserverFlags, problems: string[]): ApiserverConfig {
  const check = <T>(make: () => T, fallback: T): T => {
    try {
      return make();
    } catch (err) {
      problems.push(messageOf(err));
      return fallback;
    }
  };
  return {
    flags,
    advertiseAddress: check(() => advertiseAddress(flags), ""),
    serviceClusterIpRange: check(() => serviceRange(flags["service-cluster-ip-range"]), []),
    nodePortRange: { from: flags["service-node-port-range"].first, to: flags["service-node-port-range"].last },
    authorizationModes: flags["authorization-mode"],
    abac: check(() => abacPolicies(flags), { policies: [], legacy: false }),
    authorizationWebhook: check(() => authorizationWebhook(flags), undefined),
    oidc: check(() => oidcOptions(flags), undefined),
    tokenWebhook: check(() => tokenWebhook(flags), undefined),
    apiAudiences: flags["api-audiences"].length > 0 ? flags["api-audiences"] : flags["service-account-issuer"].slice(0, 1),
    plugins: {
      enable: flags["enable-admission-plugins"],
      disable: flags["disable-admission-plugins"],
      only: flags["admission-control"],
    },
    pluginConfigurations: check(
      () => readPluginConfigurations(flags["admission-control-config-file"]),
      () => undefined,
    ),
    etcdTls: {
      ca: check(() => optionalFile(flags["etcd-cafile"]), undefined),
      cert: check(() => optionalFile(flags["etcd-certfile"]), undefined),
      key: check(() => optionalFile(flags["etcd-keyfile"]), undefined),
    },
    encryption: check(() => {
      const path = flags["encryption-provider-config"] || flags["experimental-encryption-provider-config"];
      return path === "" ? undefined : readEncryptionConfig(path);
    }, undefined),
    etcdOverrides: check(() => flags["etcd-servers-overrides"].map(parseOverride), []),
    watchCacheSizes: check(() => watchCacheSizes(flags), new Map()),
    kubelet: {
      certificateAuthority: check(() => optionalFile(flags["kubelet-certificate-authority"]), undefined),
    },
    egress: check(() => readEgressConfiguration(flags["egress-selector-config-file"]), {}),
    served: check(
      () => readRuntimeConfig(flags["runtime-config"]),
      () => true,
    ),
  };
}

/** Problems of the values read, and of files that are read again later. */
function configProblems({ flags, served, plugins }: ApiserverConfig): string[] {
  return [
    ...unless(
      served("apiregistration.k8s.io", "v1", "apiservices", true),
      "API group/version apiregistration.k8s.io/v1 must be enabled",
    ),
    ...thrownBy(() => readClientCertificate(flags["proxy-client-cert-file"], flags["proxy-client-key-file"])),
    ...thrownBy(() => readClientCertificate(flags["kubelet-client-certificate"], flags["kubelet-client-key"])),
    ...thrownBy(() => readCloudConfig(flags["cloud-config"])),
    ...thrownBy(() => selectPlugins(plugins)),
    ...thrownBy(() => originPatterns(flags["cors-allowed-origins"])),
  ];
}

const unless = (condition: boolean, problem: string): string[] => (condition ? [] : [problem]);

function thrownBy(check: () => unknown): string[] {
  try {
    check();
    return [];
  } catch (err) {
    return [messageOf(err)];
  }
}

/** No cloud provider is supported that reads the file, but a missing file ends the start, as upstream. */
function readCloudConfig(path: string): void {
  try {
    if (path !== "") readFileSync(path);
  } catch (err) {
    throw new Error(`Error reading from cloud configuration file ${path}: ${messageOf(err)}`);
  }
}

/** --advertise-address; otherwise --bind-address when other hosts can reach it; otherwise the address of an interface. */
function advertiseAddress(flags: ApiserverFlags): string {
  for (const address of [flags["advertise-address"], flags["bind-address"]]) {
    if (address && !unreachable.test(address)) return address;
  }
  for (const addresses of Object.values(networkInterfaces())) {
    const found = addresses?.find(({ internal, family }) => !internal && family === "IPv4");
    if (found !== undefined) return found.address;
  }
  throw new Error(`unable to find suitable network address of ${hostname()}: use --advertise-address`);
}

/** Unspecified and loopback addresses. */
const unreachable = /^(0\.0\.0\.0|127\..*|::|::1)$/;

/**
 * The first usable address of the primary range is that of the service `kubernetes`. The API server does not know the addresses of nodes
 * and pods: the operator must choose ranges that do not overlap.
 * Source: cmd/kube-apiserver/app/options/validation.go, pkg/controlplane/services.go
 */
function serviceRange(text: string): string[] {
  const ranges = (text === "" ? "10.0.0.0/24" : text).split(",").map((range) => range.trim());
  if (ranges.length > 2) throw new Error("--service-cluster-ip-range must not contain more than two entries");
  for (const [i, range] of ranges.entries()) {
    const [address = "", bits = ""] = range.split("/");
    const longest = isIPv6(address) ? 128 : 32;
    if (isIP(address) === 0 || !/^\d{1,3}$/.test(bits) || Number(bits) > longest) {
      throw new Error(`--service-cluster-ip-range[${i}] is not a valid CIDR: ${range}`);
    }
    if (longest - Number(bits) > 20)
      throw new Error(
        `specified --service-cluster-ip-range is too large; for ${longest}-bit addresses, the mask must be >= ${longest - 20}`,
      );
    if (longest - Number(bits) < 3) throw new Error("the service cluster IP range must be at least 8 IP addresses");
  }
  const families = ranges.map((range) => isIPv6(range.split("/")[0]!));
  if (families.length === 2 && families[0] === families[1]) {
    throw new Error("--service-cluster-ip-range[0] and --service-cluster-ip-range[1] must be of different IP family");
  }
  return ranges;
}

/** Source: pkg/kubeapiserver/options/authentication.go Validate, cmd/kube-apiserver/app/options/validation.go validateTokenRequest */
function serviceAccountProblems(flags: ApiserverFlags): string[] {
  const problems: string[] = [];
  const issuers = flags["service-account-issuer"];
  const signs = flags["service-account-signing-key-file"] !== "";
  for (const [index, issuer] of issuers.entries()) {
    if (issuer === "") problems.push("service-account-issuer should not be an empty string");
    else if (issuer.includes(":") && !URL.canParse(issuer)) {
      problems.push(`service-account-issuer ${goQuote(issuer)} contained a ':' but was not a valid URL`);
    } else if (issuers.indexOf(issuer) !== index) {
      problems.push(`service-account-issuer ${goQuote(issuer)} is already specified`);
    }
  }
  if (signs !== issuers.length > 0 || (flags["api-audiences"].length > 0 && !signs)) {
    problems.push(
      "--service-account-signing-key-file, --service-account-issuer, and --api-audiences should be specified together",
    );
  }
  if (signs && flags["service-account-key-file"].length === 0) problems.push("service-account-key-file is a required flag");
  return problems;
}

/** Source: pkg/kubeapiserver/options/authorization.go Validate */
function authorizationProblems(flags: ApiserverFlags): string[] {
  const modes = flags["authorization-mode"];
  const problems: string[] = [];
  if (modes.length === 0) problems.push("at least one authorization-mode must be passed");
  const policyFile = flags["authorization-policy-file"];
  const webhookFile = flags["authorization-webhook-config-file"];
  for (const mode of modes) {
    if (!knownModes.includes(mode)) problems.push(`authorization-mode ${JSON.stringify(mode)} is not a valid mode`);
    if (mode === "ABAC" && policyFile === "") problems.push("authorization-mode ABAC's authorization policy file not passed");
    if (mode === "Webhook" && webhookFile === "") {
      problems.push("authorization-mode Webhook's authorization config file not passed");
    }
  }
  if (policyFile !== "" && !modes.includes("ABAC")) {
    problems.push("cannot specify --authorization-policy-file without mode ABAC");
  }
  if (webhookFile !== "" && !modes.includes("Webhook")) {
    problems.push("cannot specify --authorization-webhook-config-file without mode Webhook");
  }
  if (new Set(modes).size !== modes.length) {
    const list = modes.map((mode) => JSON.stringify(mode)).join(" ");
    problems.push(`authorization-mode [${list}] has mode specified more than once`);
  }
  return problems;
}

function abacPolicies(flags: ApiserverFlags): AbacPolicies {
  const path = flags["authorization-policy-file"];
  if (path === "" || !flags["authorization-mode"].includes("ABAC")) return { policies: [], legacy: false };
  return loadAbacPolicies(path);
}

function authorizationWebhook(flags: ApiserverFlags): AuthorizationWebhookOptions | undefined {
  const path = flags["authorization-webhook-config-file"];
  if (path === "" || !flags["authorization-mode"].includes("Webhook")) return undefined;
  const version = flags["authorization-webhook-version"];
  checkAuthorizationWebhookVersion(version);
  return {
    config: loadWebhookConfig(path),
    version,
    authorizedTtlMs: flags["authorization-webhook-cache-authorized-ttl"],
    unauthorizedTtlMs: flags["authorization-webhook-cache-unauthorized-ttl"],
  };
}

function tokenWebhook(flags: ApiserverFlags): TokenWebhookOptions | undefined {
  const path = flags["authentication-token-webhook-config-file"];
  if (path === "") return undefined;
  const version = flags["authentication-token-webhook-version"];
  checkTokenWebhookVersion(version);
  return { config: loadWebhookConfig(path), version, cacheTtlMs: flags["authentication-token-webhook-cache-ttl"] };
}

function oidcOptions(flags: ApiserverFlags): OidcOptions | undefined {
  if (flags["oidc-issuer-url"] === "" || flags["oidc-client-id"] === "") return undefined;
  const caFile = flags["oidc-ca-file"];
  const ca = caFile === "" ? undefined : readFileSync(caFile, "utf8");
  if (ca !== undefined) parseBundle(ca, caFile);
  const options: OidcOptions = {
    issuerUrl: flags["oidc-issuer-url"],
    clientId: flags["oidc-client-id"],
    ca,
    usernameClaim: flags["oidc-username-claim"],
    usernamePrefix: flags["oidc-username-prefix"],
    groupsClaim: flags["oidc-groups-claim"],
    groupsPrefix: flags["oidc-groups-prefix"],
    requiredClaims: flags["oidc-required-claim"],
    signingAlgorithms: flags["oidc-signing-algs"],
  };
  checkOidcOptions(options);
  return options;
}

/** `group/resource#servers`, servers separated by semicolons; the core group is empty: `/events#https://…`. */
function parseOverride(text: string): { group: string; resource: string; servers: string[] } {
  const match = /^([^/#]*)\/([^/#]+)#([^#]+)$/.exec(text);
  if (match === null)
    throw new Error(
      `--etcd-servers-overrides invalid, must be of format: group/resource#servers, where servers are URLs, semicolon separated: ${text}`,
    );
  return { group: match[1]!, resource: match[2]!, servers: match[3]!.split(";") };
}

/**
 * Parses `resource[.group]#size`; adds the resources that have no cache by default.
 * Source: k8s.io/apiserver pkg/server/options/etcd.go ParseWatchCacheSizes; pkg/kubeapiserver/default_storage_factory_builder.go
 */
function watchCacheSizes(flags: ApiserverFlags): Map<string, number> {
  const sizes = new Map(["events", "events.events.k8s.io", "masterleases"].map((resource) => [resource, 0]));
  for (const text of flags["watch-cache-sizes"]) {
    const [resource, size, ...more] = text.split("#");
    if (resource === undefined || size === undefined || more.length > 0)
      throw new Error(`invalid value of watch cache size: ${text}`);
    if (!/^[+-]?\d+$/.test(size)) throw new Error(`invalid size of watch cache size: ${text}`);
    if (Number(size) < 0) throw new Error(`watch cache size cannot be negative: ${text}`);
    sizes.set(resource, Number(size));
  }
  return sizes;
}

function readClientCertificate(certFile: string, keyFile: string): void {
  if (certFile !== "" && keyFile !== "") readKeyPair(certFile, keyFile);
}

function optionalFile(path: string): Buffer | undefined {
  return path === "" ? undefined : readFileSync(path);
}
