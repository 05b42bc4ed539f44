import { type Client, newClient } from "@coxswain/apimachinery/client/client";
import { type ClientConfig, type Impersonation, userAgentOf } from "@coxswain/apimachinery/client/config";
import type { Transport } from "@coxswain/apimachinery/client/transport";
import type { InProcessDaemon, InProcessOptions } from "@coxswain/apimachinery/flags/in-process";
import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { serviceAccounts } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { nextIteration } from "@coxswain/apimachinery/process/event-loop/iterations";
import { discardLogger, type Logger, newLogger } from "@coxswain/apimachinery/process/logging/logger";
import { createServer } from "@coxswain/apimachinery/transport/node-http";
import { newKubeScheduler } from "@coxswain/scheduler";
import { Faults, type WatchFaults } from "../faults/faults.ts";
import { WriteLog } from "../history/write-log.ts";
import { FakeNodes } from "../nodes/fake-nodes.ts";
import { checkRules } from "../nodes/pod-rules.ts";
import { DirectEtcdClient } from "../store/direct-client.ts";
import { MemoryEtcd } from "../store/memory-etcd.ts";
import { type ClusterClock, newTrackedClock, VirtualClock } from "../time/virtual-clock.ts";
import { InProcessTls, type WebListener } from "../tls/in-process-tls.ts";
import { Activity, untilIdle } from "./activity.ts";
import { type InProcessApiServer, startInProcessApiServer } from "./api-server.ts";
import { newControllers } from "./controllers.ts";
import { Dialer } from "./dialer.ts";
import { kubeconfigOf } from "./kubeconfig.ts";
import { type ClusterOptions, controllersOf, nodesOf, startOf } from "./options.ts";
import { Pace } from "./pace.ts";
import { isLongRunning, Requests } from "./requests.ts";
import { newScratch, type Scratch, type Tokens } from "./scratch.ts";
import { openSocket, type Socket, type SocketOptions } from "./socket.ts";
import { InProcessTransport } from "./transport.ts";

/** Time limit for the start of a part, on the cluster's clock. */
const startLimitMs = 60_000;

/** All parts of one cluster; none is shared with another cluster. */
export class ClusterParts {
  readonly options: ClusterOptions;
  readonly clock: ClusterClock;
  readonly activity = new Activity();
  readonly faults: Faults;
  readonly requests: Requests;
  /** undefined: a real etcd. */
  readonly etcd: MemoryEtcd | undefined;
  /** undefined: real time. */
  readonly pace: Pace | undefined;
  readonly dialer = new Dialer();
  /** undefined with a real etcd, which does not report who wrote a key. */
  readonly writes: WriteLog | undefined;
  /** Start time of the cluster, or of the cluster that it was copied from: ms since the epoch. */
  readonly startMs: number;
  readonly #hasOwnControllers: boolean;
  readonly #scratch: Scratch;
  readonly #log: Logger;
  readonly #stopping = new AbortController();
  readonly #transports: InProcessTransport[] = [];
  readonly #programs: Promise<void>[] = [];
  #etcdClient: DirectEtcdClient | undefined;
  #server: InProcessApiServer | undefined;
  #nodes: FakeNodes | undefined;
  #socket: Promise<Socket> | undefined;
  #stopped: Promise<void> | undefined;

  /** @param original the cluster to copy */
  constructor(options: ClusterOptions, original?: ClusterParts) {
    this.options = options;
    this.#hasOwnControllers = options.controllers !== original?.options.controllers || original === undefined;
    const startMs = original?.pace === undefined ? startOf(options.clock) : original.clock.now();
    const virtual = startMs === undefined ? undefined : new VirtualClock(startMs);
    this.clock = virtual ?? newTrackedClock(realClock);
    this.etcd = options.etcd === undefined ? (original?.etcd?.fork() ?? new MemoryEtcd()) : undefined;
    this.pace = virtual && new Pace(virtual, this.activity, () => this.etcd?.revision ?? 0);
    this.faults = new Faults(this.clock, () => this.#watchFaults());
    this.requests = new Requests(this.activity, this.faults);
    this.startMs = original?.startMs ?? this.clock.now();
    this.writes =
      this.etcd &&
      new WriteLog(
        this.etcd,
        () => this.clock.now(),
        () => this.requests.current,
        original?.writes?.all,
      );
    this.#log =
      options.log === undefined ? discardLogger : newLogger({ verbosity: options.log, clock: this.clock, exit: neverExit });
    // Validates the options before anything is started.
    nodesOf(options.nodes);
    checkRules(options.pods ?? []);
    this.#scratch = original === undefined ? newScratch() : newScratch(original.#scratch.serviceAccountKeyPem);
  }

  get server(): InProcessApiServer {
    if (this.#server === undefined) throw new Error("the cluster has not started");
    return this.#server;
  }

  get nodes(): FakeNodes {
    if (this.#nodes === undefined) throw new Error("the cluster has no fake nodes");
    return this.#nodes;
  }

  get signal(): AbortSignal {
    return this.#stopping.signal;
  }

  /**
   * Resolves when the API server is ready.
   * @param awaits `all`: also waits for all other parts; `server`: these start in the background
   */
  async start(awaits: "all" | "server" = "all"): Promise<void> {
    try {
      const others = await this.drive("the start of the API server", this.#startServer());
      if (awaits === "all") await this.drive("the start of the cluster", others());
      // Deferred by a turn, because their first steps would delay the caller.
      else this.#run(turns(1).then(others));
    } catch (err) {
      await this.stop();
      throw err;
    }
  }

  /** Waits for `work` while advancing virtual time. */
  async drive<T>(what: string, work: Promise<T>, limitMs = startLimitMs): Promise<T> {
    using _ = new KeptAlive();
    return await (this.pace === undefined ? work : this.pace.through(what, work, this.clock.now() + limitMs));
  }

  /** Waits until no request is in progress and nothing more is written, without advancing virtual time. */
  async idle(): Promise<void> {
    await (this.pace?.idle() ?? untilIdle(this.activity, () => this.clock.fired + (this.etcd?.revision ?? 0)));
  }

  /** @returns a function that starts the other parts */
  async #startServer(): Promise<() => Promise<void>> {
    const { options, etcd } = this;
    const log = this.#log;
    const names = controllersOf(options.controllers);
    const makeControllers = () => (names.length === 0 ? undefined : newControllers(names, this.#scratch));
    // A copy keeps its original's controllers unless it names others, which are validated here.
    const checked = this.#hasOwnControllers ? makeControllers() : undefined;
    const withoutAccounts = names.some((name) => name === "*" || name === "serviceaccount")
      ? []
      : // No controller would create the service accounts that this plugin looks up.
        ["--disable-admission-plugins=ServiceAccount"];
    const real = options.etcd === undefined ? [] : [`--etcd-servers=${options.etcd.join(",")}`];
    const prefix = options.etcdPrefix === undefined ? [] : [`--etcd-prefix=${options.etcdPrefix}`];
    this.#server = await startInProcessApiServer({
      scratch: this.#scratch,
      etcdClient: etcd && (() => this.#direct(etcd)),
      flags: [...withoutAccounts, ...real, ...prefix, ...(options.apiServerFlags ?? [])],
      clock: this.faults.clockOf("kube-apiserver"),
      log: log.named("kube-apiserver"),
      connect: this.dialer.connect,
      requests: this.requests,
    });
    await this.#server.server.started;
    return async () => {
      const controllers = checked ?? makeControllers();
      await Promise.all([
        this.#startNodes(),
        controllers && this.#startControllers(controllers, names),
        (options.scheduler ?? true) && this.#run(newKubeScheduler([]).run(this.#program("scheduler", "kube-scheduler"))),
        options.socket && this.socket(options.socket === true ? {} : options.socket),
      ]);
    };
  }

  #watchFaults(): WatchFaults | undefined {
    const client = this.#etcdClient;
    if (client === undefined || this.signal.aborted) return undefined;
    return {
      breakClients: (path) => this.server.listener.breakOff(({ url }) => isLongRunning(url) && url.includes(path)),
      breakStore: () => client.breakWatches(),
      lagStore(ms) {
        client.lagMs = ms;
      },
    };
  }

  #direct(etcd: MemoryEtcd): DirectEtcdClient {
    this.#etcdClient = new DirectEtcdClient(etcd, this.clock);
    return this.#etcdClient;
  }

  async #startControllers(manager: InProcessDaemon, names: readonly string[]): Promise<void> {
    this.#run(manager.run(this.#program("controllers", "kube-controller-manager")));
    if (!names.some((name) => name === "*" || name === "serviceaccount")) return;
    // Pods are rejected until their namespace has its default service account.
    const client = this.client("controllers", {});
    for (;;) {
      try {
        return void (await client.get(serviceAccounts, { namespace: "default", name: "default" }, { signal: this.signal }));
      } catch (err) {
        if (!isNotFound(err)) throw err;
      }
      await this.clock.sleep(5, this.signal);
    }
  }

  async #startNodes(): Promise<void> {
    const nodes = nodesOf(this.options.nodes);
    if (nodes.length === 0) return;
    this.#nodes = new FakeNodes({
      client: this.client("nodes", { userAgent: userAgentOf("fake-nodes") }),
      clock: this.clock,
      log: this.#log.named("fake-nodes"),
      signal: this.signal,
      nodes,
      rules: this.options.pods ?? [],
      serve: (host, accept) => void this.dialer.serve(host, accept),
    });
    await this.#nodes.start();
  }

  /** A client for tests: virtual time advances when a request can only complete that way. */
  testClient(config: Partial<ClientConfig> & { readonly impersonate?: Impersonation }): Client {
    const { pace } = this;
    const transport = this.#transport();
    if (pace === undefined) return newClient({ ...this.#configOf("admin"), ...config }, { clock: this.clock, transport });
    const assisted: Transport = {
      request: (request) => pace.assist(`${request.method} ${request.path}`, transport.request(request)),
      reconnect() {},
      close: () => transport.close(),
    };
    return newClient({ ...this.#configOf("admin"), ...config }, { clock: this.clock, transport: assisted });
  }

  /** A client that sends requests within this process. */
  client(user: keyof Tokens, config: Partial<ClientConfig> & { readonly impersonate?: Impersonation }): Client {
    const transport = this.#transport();
    return newClient({ ...this.#configOf(user), ...config }, { clock: this.clock, transport });
  }

  /** Starts an HTTPS server on a host name that only this cluster's API server can resolve. */
  async serve(host: string, listener: WebListener): Promise<{ url: string; caBundle: string }> {
    const server = createServer((request, response) => {
      (async () => listener(request, response))().catch(() => response.destroy());
    });
    const tls = new InProcessTls(server, [host]);
    this.dialer.serve(host, tls.accept);
    return { url: `https://${host}`, caBundle: Buffer.from(await tls.ca()).toString("base64") };
  }

  /** The listening port, opened by the first call. @throws Error when it is in use */
  socket(options: SocketOptions = {}): Promise<Socket> {
    this.#socket ??= openSocket(options, this.server.listener, this.#log.named("serving"));
    return this.#socket;
  }

  /** The administrator's kubeconfig as YAML, for the port that `socket` opens. @throws Error when the port is in use */
  async kubeconfig(): Promise<string> {
    const { url, ca } = await this.socket();
    return kubeconfigOf({ server: url, ca, token: this.#scratch.tokens.admin });
  }

  /** Stops all parts of the cluster; later calls return the same promise. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop(): Promise<void> {
    using _ = new KeptAlive();
    this.#nodes?.stop();
    this.#stopping.abort(new Error("the cluster was stopped"));
    for (const transport of this.#transports) transport.close();
    await Promise.race([Promise.allSettled(this.#programs), turns(50)]);
    await this.#socket?.then((socket) => socket.close()).catch(() => {});
    if (this.#etcdClient !== undefined) this.#etcdClient.lagMs = 0;
    // The server's shutdown waits for timers, so virtual time must advance.
    if (this.#server !== undefined) await this.drive("the stop of the API server", this.#server.server.stop(0));
    this.dialer.close();
    this.clock.stop();
    this.#scratch.remove();
  }

  /** Logs the failure of a part, which otherwise would be an unhandled rejection that ends the process. */
  #run(program: Promise<void>): void {
    this.#programs.push(
      program.catch((err: unknown) => {
        if (!this.signal.aborted) this.#log.error("a part of the cluster failed", err);
      }),
    );
  }

  #program(user: keyof Tokens, name: string): InProcessOptions {
    return {
      clientConfig: { ...this.#configOf(user), userAgent: userAgentOf(name) },
      transport: this.#transport(),
      clock: this.faults.clockOf(name),
      log: this.#log.named(name),
      signal: this.signal,
    };
  }

  #configOf(user: keyof Tokens): ClientConfig {
    return { host: "http://in-process", token: this.#scratch.tokens[user], qps: -1, userAgent: "test" };
  }

  #transport(): InProcessTransport {
    const transport = new InProcessTransport(() => this.server.listener);
    this.#transports.push(transport);
    return transport;
  }
}

/** Keeps the process alive during a wait; the cluster's timers do not. */
class KeptAlive {
  readonly #timer = setInterval(() => {}, 60_000);

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}

async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await nextIteration();
}

/** @throws always: no part of a cluster may exit the test's process */
function neverExit(code: number): never {
  throw new Error(`a part of the cluster requested to exit with ${code}`);
}
