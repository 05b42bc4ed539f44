import { type Controller, done, newController } from "@coxswain/apimachinery/controller/controller";
import { enqueueBy, enqueueMapped, enqueueSelf, needsSynced } from "@coxswain/apimachinery/controller/sources";
import { ConfigError } from "@coxswain/apimachinery/flags/run-main";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { causesOf } from "@coxswain/apimachinery/objects/errors/message";
import { isAlreadyExists } from "@coxswain/apimachinery/objects/errors/predicates";
import { deepEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { keyOf, type ObjectKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { Node, Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import type { Ingress, IngressClass } from "@coxswain/apimachinery/objects/schema/kinds/networking/v1";
import {
  endpointSlices,
  ingressClasses,
  ingresses,
  nodes,
  services,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { KeyPair } from "@coxswain/apimachinery/serving/certificates";
import { pairOfTemporaryAuthority } from "@coxswain/apimachinery/serving/certificates-aside";
import type { Part, PartContext } from "../part.ts";
import type { Backends } from "./backends.ts";
import { CertificateReader } from "./certificate-reader.ts";
import { Certificates, secretsOf } from "./certificates.ts";
import { isServed, newIngressClass } from "./classes.ts";
import { newIngressMetrics } from "./metrics.ts";
import { className } from "./names.ts";
import { backendsOf, makingRouteTable, newRouteTable } from "./routes.ts";
import { type IngressServer, startIngressServer } from "./server.ts";
import { newStatusController } from "./status.ts";
import { byService, byServiceIndex, onAddresses, watchedBackends } from "./watched-backends.ts";

const connectTimeoutMs = 5_000;
const closeGraceMs = 5_000;
const withdrawMs = 2_000;
/** At the start connections wait this long for certificates; after that those without one get the default certificate. */
const firstReadMs = 5_000;

/**
 * Serves HTTP and HTTPS for the Ingresses of its class.
 * @param address to listen on; undefined: all of this node
 */
export async function startIngress(context: PartContext, address?: string): Promise<Part> {
  const { signal, flags, log, clock, turns, fail } = context;
  checkFlags(flags);
  const seen = await watched(context);
  const certificates = new Certificates(context);
  const backends = watchedBackends(context, seen);
  const served = (ingress: Ingress): boolean => isServed(ingress, seen.classes.lister.list());
  const status = newStatus(context, seen, { served, backends, certificates });
  const onRead = (): void => {
    for (const ingress of seen.ingresses.lister.list()) if (ingress.spec.tls !== undefined) status.enqueue(keyOf(ingress));
  };
  const reader = new CertificateReader({ ...context, certificates, onRead });
  let routes = newRouteTable([]);
  let certificatesRead = Promise.resolve();
  /** Resolves when the rules are in use; the certificates of new Secrets follow: one Ingress may name thousands. */
  const rulesChanged = async (): Promise<void> => {
    const own = seen.ingresses.lister.list().filter(served);
    routes = await turns.run(makingRouteTable(own));
    if (certificates.want(own)) certificatesRead = reader.read();
  };
  await rulesChanged();
  await atMost(firstReadMs, certificatesRead, clock, signal);
  const server: IngressServer = await startIngressServer({
    ...(address !== undefined && { address }),
    httpPort: flags["ingress-http-port"],
    httpsPort: flags["ingress-https-port"],
    routes: () => routes,
    backends,
    contextOf: (name) => certificates.contextOf(name),
    defaultCertificate: await newSelfSigned(),
    connectTimeoutMs,
    responseTimeoutMs: flags["ingress-response-timeout"],
    idleTimeoutMs: flags["ingress-idle-timeout"],
    mostBodyBytes: flags["ingress-max-body-bytes"],
    connectionsPerClient: flags["ingress-connections-per-client"],
    metrics: newIngressMetrics(context.metrics),
    log,
  });
  log.info("Serving Ingresses", { httpPort: server.httpPort, httpsPort: server.httpsPort });
  const rules = newRules(context, seen, rulesChanged);
  const running = Promise.all([status.run(signal), rules.run(signal), reader.run()]);
  running.catch(fail);
  return {
    check() {
      if (reader.problem !== undefined) throw new Error(reader.problem);
    },
    async stop() {
      await Promise.all([server.close(closeGraceMs), running.catch(() => {})]);
      await status.withdraw(AbortSignal.timeout(withdrawMs)).catch((err: unknown) => {
        log.warn("cannot remove this node's address from the status of Ingresses", { err: causesOf(err) });
      });
    },
  };
}

/** Resolves with `work`, after a time at the latest. */
async function atMost(ms: number, work: Promise<void>, clock: Clock, signal: AbortSignal): Promise<void> {
  const over = new AbortController();
  const time = clock.sleep(ms, AbortSignal.any([signal, over.signal])).catch(() => {});
  await Promise.race([work, time]);
  over.abort(new Error("the work has ended"));
}

/** What the part sees of the cluster. */
interface Seen {
  readonly ingresses: SharedInformer<Ingress>;
  readonly classes: SharedInformer<IngressClass>;
  readonly services: SharedInformer<Service>;
  readonly slices: SharedInformer<EndpointSlice>;
  readonly nodes: SharedInformer<Node>;
}

async function watched({ informers, signal }: PartContext): Promise<Seen> {
  const seen: Seen = {
    ingresses: informers.for<Ingress>(ingresses),
    classes: informers.for<IngressClass>(ingressClasses),
    services: informers.for<Service>(services),
    slices: informers.for<EndpointSlice>(endpointSlices),
    nodes: informers.for<Node>(nodes),
  };
  seen.slices.addIndex(byServiceIndex, byService);
  await Promise.all(Object.values(seen).map((informer: SharedInformer<unknown>) => informer.waitForSync(signal)));
  return seen;
}

interface StatusParts {
  readonly served: (ingress: Ingress) => boolean;
  readonly backends: Backends;
  readonly certificates: Certificates;
}

function newStatus(context: PartContext, seen: Seen, { served, backends, certificates }: StatusParts) {
  const problemsOf = (ingress: Ingress): { reason: string; message: string }[] => [
    ...backendsOf(ingress).flatMap((backend) => {
      const found = backends.endpointsOf(backend);
      return "problem" in found && found.problem.reason !== "NoEndpoints" ? [found.problem] : [];
    }),
    ...secretsOf(ingress).flatMap(({ secret }) => {
      const message = certificates.problemOf(secret);
      return message === undefined ? [] : [{ reason: "MissingCertificate", message }];
    }),
  ];
  const all = (): ObjectKey[] => seen.ingresses.lister.list().map(keyOf);
  const ofNamespace = ({ metadata }: Service): ObjectKey[] =>
    seen.ingresses.lister.inNamespace(metadata.namespace ?? "").map(keyOf);
  return newStatusController({
    ...context,
    ingresses: seen.ingresses.lister,
    nodes: seen.nodes.lister,
    isServed: served,
    problemsOf,
    sources: [
      enqueueSelf(seen.ingresses),
      enqueueMapped(seen.services, ofNamespace, (old, now) => !deepEqual(old.spec, now.spec)),
      enqueueBy(seen.nodes, ({ enqueue }) => onAddresses(() => all().forEach(enqueue))),
      enqueueMapped(seen.classes, all),
      needsSynced(seen.slices),
    ],
  });
}

/** Calls `rulesChanged` when Ingresses and classes have, and makes the IngressClass. */
function newRules({ client, log, clock, turns }: PartContext, seen: Seen, rulesChanged: () => Promise<void>): Controller {
  // One key: changes of many Ingresses at once lead to one table.
  const rulesKey = "rules";
  const controller = newController({
    name: "ingress-rules",
    sources: [
      enqueueMapped(seen.ingresses, () => [rulesKey], isOtherRule),
      enqueueMapped(seen.classes, () => [rulesKey, className]),
    ],
    async reconcile(key, signal) {
      if (key === rulesKey) {
        await rulesChanged();
        return done;
      }
      if (seen.classes.lister.get(className) !== undefined) return done;
      const wanted = newIngressClass(seen.classes.lister.list());
      await client.create<IngressClass>(ingressClasses, wanted, { signal }).catch((err: unknown) => {
        if (!isAlreadyExists(err)) throw err; // another node was faster
      });
      return done;
    },
    batchMs: 100,
    ...{ log, clock, turns },
  });
  controller.enqueue(className);
  return controller;
}

type Flags = PartContext["flags"];

/** @throws ConfigError */
function checkFlags(flags: Flags): void {
  for (const name of ["ingress-http-port", "ingress-https-port"] as const) {
    const port = flags[name];
    if (port < 0 || port > 65_535) throw new ConfigError(`--${name} must be within the range [0, 65535], not ${port}`);
  }
}

/** The status is what this program writes itself. */
const isOtherRule = (old: Ingress, now: Ingress): boolean =>
  !deepEqual(old.spec, now.spec) || !deepEqual(old.metadata.annotations, now.metadata.annotations);

/** Self-signed, for hosts without a certificate: clients get a certificate error at once instead of a timeout. */
const newSelfSigned = (): Promise<KeyPair> =>
  pairOfTemporaryAuthority({
    ...{ authority: "coxswain-services ingress", commonName: "no certificate for this host", validDays: 3_650 },
    ...{ dnsNames: ["ingress.invalid"], ips: [] },
  });
