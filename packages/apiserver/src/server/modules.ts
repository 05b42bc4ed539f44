/**
 * Wires the components between the filters and etcd on top of an open storage: stores, admission, router, the loopback client
 * with its informers, authentication and authorization.
 */
import type { Client, ClientObserver } from "@coxswain/apimachinery/client/client";
import { clientMetrics } from "@coxswain/apimachinery/client/metrics";
import { newEventRecorder } from "@coxswain/apimachinery/controller/event-recorder";
import { type DecisionReader, noDecisions } from "@coxswain/apimachinery/decisions/decision";
import type { DecisionLog } from "@coxswain/apimachinery/decisions/decision-log";
import { type InformerFactory, newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import { informerFailures } from "@coxswain/apimachinery/informers/metrics";
import { deepClone } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { formatGroupVersion, type GroupVersion } from "@coxswain/apimachinery/objects/meta/group-version";
import { SetOnce } from "@coxswain/apimachinery/objects/meta/set-once";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Endpoints, Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { endpoints as endpointsRef, services as serviceRef } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { ExchangeHandler } from "@coxswain/apimachinery/serving/exchange";
import { queueMetrics } from "@coxswain/apimachinery/workqueue/metrics";
import { makePlugins } from "../admission/catalogue.ts";
import { newAdmissionChain } from "../admission/chain.ts";
import { AdmissionDecisions } from "../admission/decisions.ts";
import type { AdmissionChain, AdmissionPlugin } from "../admission/plugin.ts";
import type { ObjectVersions } from "../admission/plugin-context.ts";
import { newWebhookCaller, type WebhookDialers } from "../admission/webhooks/caller.ts";
import { webhookCredentials } from "../admission/webhooks/credentials.ts";
import type { ResolveService } from "../admission/webhooks/endpoint.ts";
import type { ResourceVersion } from "../admission/webhooks/matcher.ts";
import { type Aggregator, newAggregator } from "../aggregation/aggregator.ts";
import { type Location, newServiceResolver } from "../aggregation/service-resolver.ts";
import { type Authentication, buildAuthentication } from "../authentication/build.ts";
import type { Authorizer } from "../authorization/authorizer.ts";
import { buildAuthorization } from "../authorization/build.ts";
import { nodeRules } from "../bootstrap/rbac-policy.ts";
import type { StorageVersions } from "../bootstrap/storage-versions.ts";
import type { ApiserverConfig } from "../config.ts";
import { type CustomResources, newCustomResources } from "../custom-resources/custom-resources.ts";
import { withPrecompiledRules } from "../custom-resources/rule-precompilation.ts";
import { converterOf } from "../custom-resources/webhook-conversion.ts";
import { ExplainPages } from "../explain/pages.ts";
import type { Auditor } from "../filters/audit.ts";
import { newFilterChain } from "../filters/chain.ts";
import { countTermination, newRequestMetrics, type RequestMetrics, reportedVerb } from "../filters/metrics.ts";
import type { ObjectCounts } from "../flow-control/object-counts.ts";
import { fromHubInSteps } from "../handlers/convert.ts";
import { toHubInTurns } from "../handlers/decode.ts";
import { ListBodies } from "../handlers/list-body.ts";
import { writeError } from "../handlers/response.ts";
import { newRouter, type Router } from "../handlers/router.ts";
import { newServedResources, type ServedResource, type ServedResources, servedLookup } from "../handlers/served-resources.ts";
import { newLoopbackClient } from "../loopback/client.ts";
import definitions from "../metrics.json" with { type: "json" };
import { newNodeProxy } from "../node-proxy/upstream.ts";
import { builtInResources, internalResources } from "../registry/catalogue.ts";
import { newServiceRepair, type ServiceRepair } from "../registry/core/services/repair.ts";
import { handleQuestions } from "../registry/diagnostics/handler.ts";
import type { RegistryServices, RegistryStore } from "../registry/generic/resource.ts";
import { newRegistryStore } from "../registry/generic/store.ts";
import type { ServerRequest } from "../request/server-request.ts";
import type { StorageSet } from "../storage/open.ts";
import type { WatchedCertificates } from "./certificates.ts";
import { newClusterIpMetrics } from "./cluster-ip-metrics.ts";
import { type Diagnostics, openDiagnostics } from "./diagnostics.ts";
import type { Edge } from "./edge.ts";
import { type LoadLimit, newLoadLimit } from "./flow-control.ts";
import type { Foundation } from "./foundation.ts";
import { storeGetter, tokenIssuer } from "./service-accounts.ts";
import { withStorageVersionBarrier } from "./storage-version-barrier.ts";
import { newWebhookMetrics } from "./webhook-metrics.ts";

interface ModuleOptions
  extends Pick<
    Foundation,
    "config" | "clock" | "log" | "featureEnabled" | "turns" | "metrics" | "memory" | "tunnels" | "keys" | "drain" | "signal"
  > {
  readonly storage: StorageSet;
  readonly certificates: Pick<WatchedCertificates, "clientCa" | "requestHeaderCa" | "proxy" | "kubelet">;
  /** Address of this server for its own connections. */
  readonly self: () => Location;
  readonly edge: Edge;
  /** Use priority and fairness instead of the two max-in-flight limits. */
  readonly fairness: boolean;
  readonly objectCounts: ObjectCounts;
  readonly auditor: Auditor | undefined;
  /** Decisions of this server, for explanations. undefined: daemons are not queried for their decisions either. */
  readonly decisions?: DecisionLog | undefined;
}

export interface Modules {
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
  /** Decisions of all daemons of the cluster. */
  readonly decisions: DecisionReader;
  /** Whether authorization and admission informers have synced. */
  synced(): boolean;
}

/**
 * Creates and connects all modules; informers are started later, by the caller. The server's client of itself refers to the router, and
 * resources to the services that are built on that client: both are set when they are complete.
 */
export function connectModules(options: ModuleOptions): Modules {
  const { config, clock, log, metrics, turns, featureEnabled, tunnels } = options;
  const services = new SetOnce<RegistryServices>("the services of the registry");
  const router = new SetOnce<Router>("the router");
  const registry = openRegistry(options, () => services.get());
  const requestMetrics = newRequestMetrics(metrics);
  const observer = clientMetrics(metrics);
  const client = loopbackClient(options, registry.served, router, requestMetrics, observer);
  const informers = newInformerFactory(client, { log: log.named("informers"), clock, onFailure: informerFailures(metrics) });
  const base: Base = { options, registry, client, informers, requestMetrics, observer };

  const authorization = buildAuthorization({
    modes: config.authorizationModes,
    servesRbac: config.served("rbac.authorization.k8s.io", "v1", "clusterroles", true),
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
  const { authorize } = authorization;
  if (config.abac.legacy) {
    log.warn("the ABAC policy file contains unversioned rules", { path: config.flags["authorization-policy-file"] });
  }
  const resolve = newServiceResolver({
    services: informers.for<Service & KubeObject>(serviceRef).lister,
    endpoints: config.flags["enable-aggregator-routing"] ? informers.for<Endpoints & KubeObject>(endpointsRef).lister : undefined,
    self: options.self,
  });
  const { aggregator, customResources } = connectExtensions(base, resolve);
  const authentication = connectAuthentication(base);
  const issuer = tokenIssuer(config);
  services.set({
    store: registry.store,
    now: () => clock.now(),
    turns,
    featureEnabled,
    authorize,
    authenticateToken: authentication.authenticateToken,
    resolveRules: authorization.resolveRules,
    ...(authorization.rbacRules !== undefined && { rbacRules: authorization.rbacRules }),
    ...(issuer !== undefined && { tokenIssuer: issuer }),
  });
  const { admission, plugins } = connectAdmission(base, authorize, resolve);
  const route = openRouter(base, services.get(), aggregator, admission);
  const { signal } = options;
  const barrier = { resources: registry.served, client, clock, signal, featureEnabled };
  const { handle, storageVersions } = withStorageVersionBarrier(route, barrier);
  router.set(handle);

  const loadLimit = newLoadLimit({ ...options, client, informers, log: log.named("flow-control"), requestMetrics });
  const diagnostics = options.decisions && openDiagnostics({ ...options, decisions: options.decisions, client });
  const decisions = diagnostics?.reader ?? noDecisions;
  const explain = new ExplainPages({ resources: registry.served, authorize, decisions, turns, clock });
  return {
    serve: openFilterChain(base, {
      handle,
      handleOther: (request) => otherPage(request, diagnostics, options.edge, loadLimit, explain) ?? handle(request),
      authenticate: authentication.authenticate,
      authorize,
      limitLoad: loadLimit.filter,
    }),
    client,
    informers,
    repair: openServiceRepair(base, () => services.get()),
    aggregator,
    loadLimit,
    customResources,
    storageVersions,
    decisions,
    synced: () => authorization.synced() && plugins.every((plugin) => plugin.ready?.() ?? true),
  };
}

/** Dependencies of the modules that are created later. */
interface Base {
  readonly options: ModuleOptions;
  readonly registry: Registry;
  readonly client: Client;
  readonly informers: InformerFactory;
  readonly requestMetrics: RequestMetrics;
  readonly observer: ClientObserver;
}

/** @returns the server's client of itself, whose requests pass neither the filters nor a connection */
function loopbackClient(
  { turns }: ModuleOptions,
  resources: ServedResources,
  router: SetOnce<Router>,
  requestMetrics: RequestMetrics,
  observer: ClientObserver,
): Client {
  return newLoopbackClient({
    observer,
    handle: async (request) => {
      const { resource, subresource } = request.info;
      requestMetrics.selfRequests.labels(reportedVerb(request), resource, subresource).inc();
      return router.get()(request);
    },
    onRead: (verb, { resource }) => requestMetrics.selfRequests.labels(verb, resource, "").inc(),
    writeError,
    storeOf(ref) {
      const served = resources.find(ref.group, ref.version, ref.resource);
      return served?.isHub === true ? served.store : undefined;
    },
    turns,
  });
}

/** The API's extensions: other servers, and custom resources unless --runtime-config disables them. */
function connectExtensions(
  { options, registry, client, informers, requestMetrics, observer }: Base,
  resolve: ResolveService,
): { readonly aggregator: Aggregator; readonly customResources: CustomResources | undefined } {
  const { config, clock, log, metrics, turns, featureEnabled, tunnels } = options;
  const resources = registry.served;
  const queues = queueMetrics(metrics, clock);
  const aggregator = newAggregator({
    informers,
    certificate: options.certificates.proxy,
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
  if (resources.find("apiextensions.k8s.io", "v1", "customresourcedefinitions") === undefined) {
    return { aggregator, customResources: undefined };
  }
  const credentials = webhookCredentials(undefined, options.certificates.proxy);
  const conversionWebhooks = newWebhookCaller(resolve, credentials, turns, webhookDialers(options, observer));
  const customResources = newCustomResources({
    client,
    informers,
    catalogue: resources,
    storage: options.storage,
    storeOptions: storeOptionsOf(config),
    turns,
    memory: options.memory.entries,
    builtInGroups: new Set(resources.groups()),
    converterFor: ({ spec }) =>
      converterOf(spec.conversion, (config, question) => conversionWebhooks.call(config, question), turns),
    groupVersions: aggregator.autoregistration,
    establishDelayMs: config.flags["apiserver-count"] > 1 ? establishDelayMs : 0,
    featureEnabled,
    queues,
    clock,
    log: log.named("custom-resources"),
  });
  return { aggregator, customResources };
}

function connectAuthentication({ options, registry }: Base): Authentication {
  const { config, clock, log, metrics, tunnels } = options;
  const { flags } = config;
  const getter = storeGetter(registry.store);
  return buildAuthentication({
    anonymous: isAnonymousAllowed(config, log),
    apiAudiences: config.apiAudiences,
    clientCa: options.certificates.clientCa,
    frontProxy:
      options.certificates.requestHeaderCa === undefined
        ? undefined
        : {
            pool: options.certificates.requestHeaderCa,
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
}

function connectAdmission(
  { options, registry, client, informers, observer }: Base,
  authorize: Authorizer,
  resolveService: ResolveService,
): { readonly admission: AdmissionChain; readonly plugins: readonly AdmissionPlugin[] } {
  const { config, clock, log, metrics, turns, featureEnabled } = options;
  const versions = objectVersions(registry.served, turns);
  const plugins = makePlugins(config.plugins, {
    informers,
    client,
    authorize,
    clock,
    turns,
    log: log.named("admission"),
    featureEnabled,
    defaultNotReadyTolerationSeconds: config.flags["default-not-ready-toleration-seconds"],
    defaultUnreachableTolerationSeconds: config.flags["default-unreachable-toleration-seconds"],
    versions,
    webhookMetrics: newWebhookMetrics(metrics),
    resolveService,
    webhookDialers: webhookDialers(options, observer),
    proxyCertificate: options.certificates.proxy,
    metrics,
    configurationOf: config.pluginConfigurations,
  });
  const decisions = options.decisions && new AdmissionDecisions(options.decisions, versions);
  const chain = newAdmissionChain(plugins, metrics, decisions);
  const compilesRules = featureEnabled("CustomResourceValidationExpressions");
  return { admission: compilesRules ? withPrecompiledRules(turns, chain) : chain, plugins };
}

const webhookDialers = ({ tunnels, metrics }: ModuleOptions, observer: ClientObserver): WebhookDialers => {
  const withoutNames = metrics.counter(definitions.apiserver_webhooks_x509_missing_san_total);
  return { toServices: tunnels.cluster, toUrls: tunnels.controlplane, observer, missingSan: () => withoutNames.inc() };
};

function openRouter(
  { options, registry }: Base,
  services: RegistryServices,
  aggregated: Aggregator,
  admission: AdmissionChain,
): Router {
  const { config, clock, log, metrics, featureEnabled, tunnels } = options;
  const { flags } = config;
  return newRouter({
    resources: registry.served,
    aggregated,
    admission,
    services,
    listBodies: new ListBodies(options.memory.lists),
    documents: options.memory.documents,
    nodeProxy: newNodeProxy({
      get clientCertificate() {
        return options.certificates.kubelet.current;
      },
      certificateAuthority: config.kubelet.certificateAuthority,
      dialTimeoutMs: flags["kubelet-timeout"],
      bytesPerSecond: flags["max-connection-bytes-per-sec"],
      clock,
      log: log.named("node-proxy"),
      ownPort: () => options.self().port,
      redirects: featureEnabled("StreamingProxyRedirects") ? { sameHost: featureEnabled("ValidateProxyRedirects") } : undefined,
      tunnel: tunnels.cluster,
      turns: services.turns,
    }),
    log,
    metrics,
    clock,
    minRequestTimeoutMs: flags["min-request-timeout"] * 1000,
    rootPaths: () => [...options.edge.paths(), ...(options.config.flags.ui ? ["/ui/"] : [])],
    advertiseAddress: () => `${flags["external-hostname"] || config.advertiseAddress}:${flags["secure-port"]}`,
  });
}

type ChainParts = Pick<
  Parameters<typeof newFilterChain<ServedResource>>[0],
  "handle" | "handleOther" | "authenticate" | "authorize" | "limitLoad"
>;

function openFilterChain({ options, registry, requestMetrics }: Base, parts: ChainParts): ExchangeHandler {
  const { config, clock, log } = options;
  const { flags } = config;
  return newFilterChain({
    ...parts,
    apiAudiences: config.apiAudiences,
    requestTimeoutMs: flags["request-timeout"],
    auditor: options.auditor,
    corsAllowedOrigins: flags["cors-allowed-origins"],
    hstsDirectives: flags["strict-transport-security-directives"],
    goawayChance: flags["goaway-chance"],
    drain: options.drain,
    findServed: servedLookup(registry.served),
    writeError,
    clock,
    log: log.named("httplog"),
    metrics: requestMetrics,
  });
}

/** Pages beside the API. @returns undefined for a path that the router answers */
function otherPage(
  request: ServerRequest,
  diagnostics: Diagnostics | undefined,
  edge: Edge,
  loadLimit: LoadLimit,
  explain: ExplainPages,
): Promise<void> | undefined {
  const requested = diagnostics && handleQuestions(diagnostics.questions, request);
  if (requested !== undefined) return requested;
  if (request.info.isResourceRequest) return undefined;
  if (edge.handles(request.info.path)) return Promise.resolve(edge.handle(request.exchange));
  if (loadLimit.page(request)) return Promise.resolve();
  return explain.handle(request);
}

function openServiceRepair({ options, client }: Base, services: () => RegistryServices): ServiceRepair {
  const { clock, log } = options;
  const { serviceClusterIpRange, nodePortRange } = options.config;
  const recorders = {
    "ipallocator-repair-controller": newEventRecorder({ client, component: "ipallocator-repair-controller", log, clock }),
    "portallocator-repair-controller": newEventRecorder({ client, component: "portallocator-repair-controller", log, clock }),
  };
  return newServiceRepair({
    config: { services, serviceClusterIpRange, nodePortRange },
    clock,
    log,
    onFault: ({ service, source, reason, message }) => recorders[source].event(service, "Warning", reason, message),
  });
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

function objectVersions(resources: ServedResources, turns: Turns): ObjectVersions {
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
      if (convert === undefined || object.apiVersion === formatGroupVersion(version))
        return turns.run(fromHubInSteps(served, object));
      return convert(deepClone(object), formatGroupVersion(version));
    },
    toHub(object, version, apiVersion) {
      const served = find(version);
      const { convert } = served.version;
      const inVersion = (hub: KubeObject): KubeObject | Promise<KubeObject> => {
        if (apiVersion === undefined || hub.apiVersion === apiVersion) return hub;
        return convert === undefined ? { ...hub, apiVersion } : convert(hub, apiVersion);
      };
      const hub = toHubInTurns(turns, served, object);
      return hub instanceof Promise ? hub.then(inVersion) : inVersion(hub);
    },
  };
}

/** The stores of all resources, and those that are served. */
interface Registry {
  readonly served: ServedResources;
  /** @throws Error when the resource is not in the catalogue */
  readonly store: RegistryServices["store"];
}

/** Creates the stores of all resources, and serves those enabled by --runtime-config. */
function openRegistry(options: ModuleOptions, services: () => RegistryServices): Registry {
  const { config, storage, featureEnabled } = options;
  const { flags } = config;
  const catalogue = builtInResources({
    services,
    serviceClusterIpRange: config.serviceClusterIpRange,
    clusterIpMetrics: newClusterIpMetrics(options.metrics),
    nodePortRange: config.nodePortRange,
    featureEnabled,
    kubeletConnection: { preferredAddressTypes: flags["kubelet-preferred-address-types"], port: flags["kubelet-port"] },
    etcd: {
      servers: [...new Set([...flags["etcd-servers"], ...config.etcdOverrides.flatMap(({ servers }) => servers)])],
      tls: config.etcdTls,
    },
    allowPrivileged: flags["allow-privileged"],
  });
  const stores = new Map<string, RegistryStore>();
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
  const store = (group: string, resource: string): RegistryStore => {
    const found = stores.get(`${resource}.${group}`);
    if (found === undefined) throw new Error(`there is no store of ${resource}.${group}`);
    return found;
  };
  return { served, store };
}

/** Time until other servers observe a CRD. Source: apiextensions-apiserver pkg/apiserver/customresource_handler.go */
const establishDelayMs = 5_000;

function storeOptionsOf({ flags }: ApiserverConfig) {
  return {
    deleteCollectionWorkers: flags["delete-collection-workers"],
    garbageCollection: flags["enable-garbage-collector"],
  };
}
