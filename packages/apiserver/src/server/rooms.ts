/**
 * Wires the components between the filters and etcd on top of an open storage: stores, admission, router, the loopback client
 * with its informers, authentication and authorization.
 */
import type { Client } from "@coxswain/apimachinery/client/client";
import { clientMetrics } from "@coxswain/apimachinery/client/metrics";
import type { Clock } from "@coxswain/apimachinery/clock/clock";
import { newEventRecorder } from "@coxswain/apimachinery/controller/event-recorder";
import { type DecisionReader, noDecisions } from "@coxswain/apimachinery/decisions/decision";
import type { DecisionLog } from "@coxswain/apimachinery/decisions/decision-log";
import type { Turns } from "@coxswain/apimachinery/event-loop/turns";
import { type InformerFactory, newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import { informerFailures } from "@coxswain/apimachinery/informers/metrics";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import { deepClone } from "@coxswain/apimachinery/meta/deep-equal";
import { formatGroupVersion, type GroupVersion } from "@coxswain/apimachinery/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import type { MetricsRegistry } from "@coxswain/apimachinery/metrics/registry";
import type { Endpoints, Service } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { endpoints as endpointsRef, services as serviceRef } from "@coxswain/apimachinery/schema/kinds/resources";
import type { CertificatePool } from "@coxswain/apimachinery/serving/authentication/x509";
import type { ExchangeHandler } from "@coxswain/apimachinery/serving/exchange";
import { queueMetrics } from "@coxswain/apimachinery/workqueue/metrics";
import { makePlugins } from "../admission/catalogue.ts";
import { newAdmissionChain } from "../admission/chain.ts";
import { AdmissionDecisions } from "../admission/decisions.ts";
import type { ObjectVersions, PluginContext } from "../admission/plugin-context.ts";
import { newWebhookCaller } from "../admission/webhooks/caller.ts";
import { webhookCredentials } from "../admission/webhooks/credentials.ts";
import type { ResourceVersion } from "../admission/webhooks/matcher.ts";
import { type Aggregator, newAggregator } from "../aggregation/aggregator.ts";
import type { ProxyCertificate } from "../aggregation/proxy-certificate.ts";
import { type Location, newServiceResolver } from "../aggregation/service-resolver.ts";
import { buildAuthentication } from "../authentication/build.ts";
import type { VerificationKey } from "../authentication/service-account-keys.ts";
import { buildAuthorization } from "../authorization/build.ts";
import { nodeRules } from "../bootstrap/rbac-policy.ts";
import type { StorageVersions } from "../bootstrap/storage-versions.ts";
import type { ApiserverConfig } from "../config.ts";
import { type CustomResources, newCustomResources } from "../custom-resources/custom-resources.ts";
import { withRulesAhead } from "../custom-resources/rules-ahead.ts";
import { converterOf } from "../custom-resources/webhook-conversion.ts";
import type { Tunnels } from "../egress/tunnels.ts";
import { ExplainPages } from "../explain/pages.ts";
import type { Auditor } from "../filters/audit.ts";
import { newFilterChain } from "../filters/chain.ts";
import type { Drain } from "../filters/lifetime.ts";
import { countTermination, newRequestMetrics, reportedVerb } from "../filters/metrics.ts";
import type { ObjectCounts } from "../flow-control/object-counts.ts";
import { fromHub, toHub } from "../handlers/convert.ts";
import { ListBodies } from "../handlers/list-body.ts";
import { writeError } from "../handlers/response.ts";
import { newRouter, type Router, servedCheck } from "../handlers/router.ts";
import { newServedResources, type ServedResource, type ServedResources } from "../handlers/served-resources.ts";
import { newLoopbackClient } from "../loopback/client.ts";
import { newNodeProxy } from "../node-proxy/upstream.ts";
import { builtInResources, internalResources } from "../registry/catalogue.ts";
import { newServiceRepair, type ServiceRepair } from "../registry/core/services/repair.ts";
import { handleQuestions } from "../registry/diagnostics/handler.ts";
import type { RegistryServices, RegistryStore } from "../registry/generic/resource.ts";
import { newRegistryStore } from "../registry/generic/store.ts";
import type { StorageSet } from "../storage/open.ts";
import { openDiagnostics } from "./diagnostics.ts";
import type { Edge } from "./edge.ts";
import { type LoadLimit, newLoadLimit } from "./flow-control.ts";
import type { MemoryBudget } from "./memory-budget.ts";
import { storeGetter, tokenIssuer } from "./service-accounts.ts";
import { withStorageVersionBarrier } from "./storage-version-barrier.ts";
import { newWebhookMetrics } from "./webhook-metrics.ts";

export interface RoomOptions {
  readonly config: ApiserverConfig;
  readonly storage: StorageSet;
  readonly featureEnabled: (gate: string) => boolean;
  readonly keys: readonly VerificationKey[];
  readonly clientCa: CertificatePool | undefined;
  readonly requestHeaderCa: CertificatePool | undefined;
  readonly proxyCertificate: ProxyCertificate;
  /** --kubelet-client-certificate */
  readonly kubeletCertificate: ProxyCertificate;
  /** Address of this server for its own connections. */
  readonly self: () => Location;
  readonly edge: Edge;
  readonly tunnels: Tunnels;
  /** Use priority and fairness instead of the two max-in-flight limits. */
  readonly fairness: boolean;
  readonly objectCounts: ObjectCounts;
  readonly drain: Drain;
  readonly auditor: Auditor | undefined;
  /** What this server decided. undefined: daemons are not asked for their decisions either. */
  readonly decisions?: DecisionLog | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: MetricsRegistry;
  readonly turns: Turns;
  readonly memory: MemoryBudget;
  /** Aborted when the server has stopped. */
  readonly signal: AbortSignal;
}

export interface Rooms {
  /** Handles external requests, including the filter chain. */
  readonly serve: ExchangeHandler;
  readonly client: Client;
  readonly informers: InformerFactory;
  /** Reconciles allocated cluster IPs and node ports with the services. */
  readonly repair: ServiceRepair;
  readonly aggregator: Aggregator;
  readonly loadLimit: LoadLimit;
  /** undefined when --runtime-config disables CustomResourceDefinitions. */
  readonly customResources: CustomResources | undefined;
  /** undefined without the feature gates. */
  readonly storageVersions: StorageVersions | undefined;
  /** What the daemons of the cluster decided. */
  readonly decisions: DecisionReader;
  /** Whether authorization and admission informers have synced. */
  synced(): boolean;
}

/** Creates and wires all components; informers are started later, by the caller. */
export function connectRooms(options: RoomOptions): Rooms {
  const { config, clock, log, metrics, turns, featureEnabled, edge, tunnels } = options;
  const { flags } = config;

  const stores = new Map<string, RegistryStore>();
  const services: { -readonly [Field in keyof RegistryServices]: RegistryServices[Field] } = {
    store(group, resource) {
      const store = stores.get(`${resource}.${group}`);
      if (store === undefined) throw new Error(`there is no store of ${resource}.${group}`);
      return store;
    },
    now: () => clock.now(),
    turns,
    featureEnabled,
  };
  const issuer = tokenIssuer(config);
  if (issuer !== undefined) services.tokenIssuer = issuer;
  const resources = serveCatalogue(options, services, stores);

  let router: Router | undefined;
  const requestMetrics = newRequestMetrics(metrics);
  const observer = clientMetrics(metrics);
  const webhookWay = { toServices: tunnels.cluster, toUrls: tunnels.controlplane, observer };
  const client = newLoopbackClient({
    observer,
    handle: async (request) => {
      const { resource, subresource } = request.info;
      requestMetrics.selfRequests.labels(reportedVerb(request), resource, subresource).inc();
      return router?.(request);
    },
    onRead: (verb, { resource }) => requestMetrics.selfRequests.labels(verb, resource, "").inc(),
    writeError,
    storeOf(ref) {
      const served = resources.find(ref.group, ref.version, ref.resource);
      return served?.isHub === true ? served.store : undefined;
    },
    turns,
  });
  const informers = newInformerFactory(client, { log: log.named("informers"), clock, onFailure: informerFailures(metrics) });
  const { authorize, resolveRules, rbacRules, synced } = buildAuthorization({
    modes: config.authorizationModes,
    informers,
    nodeRules: [...nodeRules],
    featureEnabled,
    abacPolicies: config.abac.policies,
    webhook: config.authorizationWebhook,
    connect: tunnels.controlplane,
    observer,
    clock,
    signal: options.signal,
  });
  if (config.abac.legacy)
    log.warn("the ABAC policy file contains unversioned rules", { path: flags["authorization-policy-file"] });
  const resolve = newServiceResolver({
    services: informers.for<Service & KubeObject>(serviceRef).lister,
    endpoints: flags["enable-aggregator-routing"] ? informers.for<Endpoints & KubeObject>(endpointsRef).lister : undefined,
    self: options.self,
  });
  const queues = queueMetrics(metrics, clock);
  const aggregator = newAggregator({
    informers,
    certificate: options.proxyCertificate,
    tunnel: tunnels.cluster,
    resolve,
    builtIn: groupVersions(resources),
    refused: (ctx, code) => countTermination(requestMetrics, ctx, "aggregator", code),
    openApiV3: featureEnabled("OpenAPIV3"),
    metrics,
    queues,
    turns,
    clock,
    log: log.named("aggregator"),
  });
  const conversionWebhooks = newWebhookCaller(resolve, webhookCredentials(undefined, options.proxyCertificate), webhookWay);
  const isDefinable = resources.find("apiextensions.k8s.io", "v1", "customresourcedefinitions") !== undefined;
  const customResources = !isDefinable
    ? undefined
    : newCustomResources({
        client,
        informers,
        catalogue: resources,
        storage: options.storage,
        storeOptions: storeOptionsOf(config),
        turns,
        memory: options.memory.entries,
        builtInGroups: new Set(resources.groups()),
        converterFor: ({ spec }) => converterOf(spec.conversion, (config, question) => conversionWebhooks.ask(config, question)),
        groupVersions: aggregator.autoregistration,
        establishDelayMs: flags["apiserver-count"] > 1 ? otherServersLearnMs : 0,
        featureEnabled,
        queues,
        clock,
        log: log.named("custom-resources"),
      });
  services.authorize = authorize;
  services.resolveRules = resolveRules;
  services.rbacRules = rbacRules;

  const context: PluginContext = {
    informers,
    client,
    authorize,
    clock,
    turns,
    log: log.named("admission"),
    featureEnabled,
    defaultNotReadyTolerationSeconds: flags["default-not-ready-toleration-seconds"],
    defaultUnreachableTolerationSeconds: flags["default-unreachable-toleration-seconds"],
    versions: objectVersions(resources),
    webhookMetrics: newWebhookMetrics(metrics),
    resolveService: resolve,
    webhookWay,
    proxyCertificate: options.proxyCertificate,
    metrics,
    configurationOf: config.pluginConfigurations,
  };
  const plugins = makePlugins(config.plugins, context);

  const getter = storeGetter(services);
  const { authenticate, authenticateToken } = buildAuthentication({
    anonymous: isAnonymousAllowed(config, log),
    apiAudiences: config.apiAudiences,
    clientCa: options.clientCa,
    frontProxy:
      options.requestHeaderCa === undefined
        ? undefined
        : {
            pool: options.requestHeaderCa,
            allowedNames: flags["requestheader-allowed-names"],
            usernameHeaders: flags["requestheader-username-headers"],
            groupHeaders: flags["requestheader-group-headers"],
            extraHeaderPrefixes: flags["requestheader-extra-headers-prefix"],
          },
    tokenAuthFile: flags["token-auth-file"],
    bootstrapTokens: flags["enable-bootstrap-token-auth"],
    serviceAccounts:
      options.keys.length === 0
        ? undefined
        : { issuers: flags["service-account-issuer"], keys: options.keys, lookup: flags["service-account-lookup"], getter },
    getter,
    oidc: config.oidc,
    tokenWebhook: config.tokenWebhook,
    connect: tunnels.controlplane,
    clock,
    log: log.named("authentication"),
    metrics,
    signal: options.signal,
  });
  services.authenticateToken = authenticateToken;

  const admission = newAdmissionChain(
    plugins,
    metrics,
    options.decisions && new AdmissionDecisions(options.decisions, context.versions),
  );
  const route = newRouter({
    resources,
    aggregated: aggregator,
    admission: services.featureEnabled("CustomResourceValidationExpressions") ? withRulesAhead(turns, admission) : admission,
    services,
    listBodies: new ListBodies(options.memory.lists),
    documents: options.memory.documents,
    nodeProxy: newNodeProxy({
      get clientCertificate() {
        return options.kubeletCertificate.current;
      },
      certificateAuthority: config.kubelet.certificateAuthority,
      dialTimeoutMs: flags["kubelet-timeout"],
      bytesPerSecond: flags["max-connection-bytes-per-sec"],
      clock,
      log: log.named("node-proxy"),
      ownPort: () => options.self().port,
      redirects: featureEnabled("StreamingProxyRedirects") ? { sameHost: featureEnabled("ValidateProxyRedirects") } : undefined,
      tunnel: tunnels.cluster,
    }),
    log,
    metrics,
    clock,
    minRequestTimeoutMs: flags["min-request-timeout"] * 1000,
    rootPaths: () => edge.paths(),
    advertiseAddress: () => `${flags["external-hostname"] || config.advertiseAddress}:${flags["secure-port"]}`,
  });
  const { signal } = options;
  const { handle, storageVersions } = withStorageVersionBarrier(route, { resources, client, clock, signal, featureEnabled });
  router = handle;

  const loadLimit = newLoadLimit({ ...options, client, informers, log: log.named("flow-control"), requestMetrics });
  const { decisions } = options;
  const diagnostics = decisions && openDiagnostics({ ...options, decisions, client });
  const reader = diagnostics?.reader ?? noDecisions;
  const explain = new ExplainPages({ resources, authorize, decisions: reader, turns, clock });
  const serve = newFilterChain({
    handle,
    handleOther: (request) => {
      const asked = diagnostics && handleQuestions(diagnostics.questions, request);
      if (asked !== undefined) return asked;
      if (!request.info.isResourceRequest && edge.handles(request.info.path)) return edge.handle(request.exchange);
      if (!request.info.isResourceRequest && loadLimit.page(request)) return;
      const explained = request.info.isResourceRequest ? undefined : explain.handle(request);
      if (explained !== undefined) return explained;
      return handle(request);
    },
    authenticate,
    authorize,
    apiAudiences: config.apiAudiences,
    requestTimeoutMs: flags["request-timeout"],
    limitLoad: loadLimit.filter,
    auditor: options.auditor,
    corsAllowedOrigins: flags["cors-allowed-origins"],
    hstsDirectives: flags["strict-transport-security-directives"],
    goawayChance: flags["goaway-chance"],
    drain: options.drain,
    isServed: servedCheck(resources),
    writeError,
    clock,
    log: log.named("httplog"),
    metrics: requestMetrics,
  });
  const { serviceClusterIpRange, nodePortRange } = config;
  const recorders = {
    "ipallocator-repair-controller": newEventRecorder({ client, component: "ipallocator-repair-controller", log, clock }),
    "portallocator-repair-controller": newEventRecorder({ client, component: "portallocator-repair-controller", log, clock }),
  };
  const repair = newServiceRepair({
    config: { services: () => services, serviceClusterIpRange, nodePortRange },
    clock,
    log,
    onFault: ({ service, source, reason, message }) => recorders[source].event(service, "Warning", reason, message),
  });
  return {
    serve,
    client,
    informers,
    repair,
    aggregator,
    loadLimit,
    customResources,
    storageVersions,
    decisions: reader,
    synced: () => synced() && plugins.every((plugin) => plugin.ready?.() ?? true),
  };
}

function groupVersions(resources: ServedResources): GroupVersion[] {
  return ["", ...resources.groups()].flatMap((group) => resources.versions(group).map((version) => ({ group, version })));
}

/** Anonymous requests would be allowed everything. Source: pkg/kubeapiserver/options/authentication.go ApplyAuthorization */
function isAnonymousAllowed({ flags, authorizationModes }: ApiserverConfig, log: Logger): boolean {
  if (!flags["anonymous-auth"] || !authorizationModes.includes("AlwaysAllow")) return flags["anonymous-auth"];
  log.warn(
    "AnonymousAuth is not allowed with the AlwaysAllow authorizer. Resetting AnonymousAuth to false. You should use a different authorizer",
  );
  return false;
}

function objectVersions(resources: ServedResources): ObjectVersions {
  const find = ({ group, version, resource }: ResourceVersion): ServedResource => {
    const served = resources.find(group, version, resource);
    if (served === undefined) throw new Error(`${resource}.${group}/${version} is not served`);
    return served;
  };
  return {
    of: ({ group, resource }) =>
      resources.versions(group).flatMap((version) => {
        const served = resources.find(group, version, resource);
        return served === undefined ? [] : [{ group, version, resource, kind: served.kind.kind }];
      }),
    ofKind: ({ group, version, kind }) =>
      resources
        .resources(group, version)
        .filter((served) => served.kind.kind === kind)
        .map(({ definition }) => ({ resource: definition.resource, namespaced: definition.namespaced })),
    fromHub(object, version) {
      const served = find(version);
      const { convert } = served.version;
      if (convert === undefined || object.apiVersion === formatGroupVersion(version)) return fromHub(served, object);
      return convert(deepClone(object), formatGroupVersion(version));
    },
    toHub(object, version, apiVersion) {
      const served = find(version);
      const { convert } = served.version;
      const hub = toHub(served, object);
      if (apiVersion === undefined || hub.apiVersion === apiVersion) return hub;
      return convert === undefined ? { ...hub, apiVersion } : convert(hub, apiVersion);
    },
  };
}

/** Creates the stores of all resources, and serves those enabled by --runtime-config. */
function serveCatalogue(options: RoomOptions, services: RegistryServices, stores: Map<string, RegistryStore>): ServedResources {
  const { config, storage, featureEnabled } = options;
  const { flags } = config;
  const catalogue = builtInResources({
    services: () => services,
    serviceClusterIpRange: config.serviceClusterIpRange,
    nodePortRange: config.nodePortRange,
    featureEnabled,
    kubeletConnection: { preferredAddressTypes: flags["kubelet-preferred-address-types"], port: flags["kubelet-port"] },
    etcd: {
      servers: [...new Set([...flags["etcd-servers"], ...config.etcdOverrides.flatMap(({ servers }) => servers)])],
      tls: config.etcdTls,
    },
    allowPrivileged: flags["allow-privileged"],
  });
  const served = newServedResources();
  for (const definition of [...catalogue, ...internalResources()]) {
    const store =
      definition.strategy === undefined
        ? undefined
        : newRegistryStore({
            definition,
            storage: storage.for(definition),
            turns: options.turns,
            eventTtlSeconds: flags["event-ttl"] / 1000,
            ...storeOptionsOf(config),
          });
    if (store !== undefined) stores.set(`${definition.resource}.${definition.group}`, store);
    if (!catalogue.includes(definition)) continue;
    for (const version of definition.versions) {
      const { group, resource } = definition;
      if (config.served(group, version.version, resource, version.servedByDefault ?? true))
        served.add(definition, version, store);
    }
  }
  return served;
}

/** Time until other servers observe a CRD. Source: apiextensions-apiserver pkg/apiserver/customresource_handler.go */
const otherServersLearnMs = 5_000;

function storeOptionsOf({ flags }: ApiserverConfig) {
  return {
    deleteCollectionWorkers: flags["delete-collection-workers"],
    garbageCollection: flags["enable-garbage-collector"],
  };
}
