import { spawnSync } from "node:child_process";
import { connect, createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Node, Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import { endpointSlices, nodes, services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { entriesOf } from "@coxswain/apimachinery/process/narrowing/keys";
import { freePort } from "@coxswain/apimachinery/testing/etcd";
import { cpuSeconds, cpuSecondsWithChildren, proportionalMb, residentMb } from "../process-usage.ts";
import { type ControlPlane, Parts, startControlPlane } from "./cluster.ts";
import { type DaemonProgram, programsOf, type RunningDaemon, spawnDaemon } from "./daemon.ts";
import { queryAtRate } from "./dns-load.ts";
import { type DaemonBenchOptions, helpOf, isChosen, parseDaemonOptions, type SizeFlags, sizeOf } from "./options.ts";
import { ReportPrinter } from "./printer.ts";
import { repeat } from "./repeat.ts";
import { type RowReport, reportsOf } from "./report.ts";
import type { RoundResult } from "./scenario.ts";

const serviceSizes: SizeFlags = {
  services: { help: "Services", normal: [5_000], quick: [50], most: 20_000 },
  endpoints: { help: "endpoints of each Service", normal: [10], quick: [2], most: 100 },
  changes: { help: "changes of one Service, one after the other", normal: [20], quick: [2], most: 1_000 },
  queries: { help: "DNS queries a second", normal: [10_000], quick: [200], most: 50_000 },
  "dns-seconds": { help: "seconds of DNS queries", normal: [20], quick: [1], most: 600 },
  "idle-seconds": { help: "seconds without a change", normal: [60], quick: [2], most: 3_600 },
};

const about = `The part services of coxswain-services, with kube-proxy as the other implementation: until all Services are in the kernel, until a change
of one is (a connection to its cluster IP reaches the new endpoint), and without changes. Then the part dns, alone: names of Services are asked at a
constant rate; the standard error stream says within which time 99 % of the answers came. CPU time is that of the daemon and of the
programs that it runs. Each round restarts the daemon. In a separate network namespace, as root.`;

const namespaceMark = "COX_BENCH_NETWORK_NAMESPACE";
const nodeName = "bench-node";
const nodeAddress = "10.77.0.1";
/** The Service whose endpoint is changed: the endpoint is this process, at one of these ports. */
const probe = { name: "probe", clusterIp: "10.96.255.254", ports: [8081, 8082] } as const;

/** `main.ts services [flags]` */
export async function benchServices(argv: readonly string[]): Promise<readonly RowReport[]> {
  const options = parseDaemonOptions(argv, serviceSizes);
  if (options.isHelp) {
    process.stdout.write(helpOf("services", about, serviceSizes, false));
    return [];
  }
  if (process.env[namespaceMark] === undefined) {
    inNetworkNamespace(argv);
    return [];
  }
  prepareNetwork();
  const parts = new Parts();
  try {
    const plane = await startControlPlane(parts);
    for (const port of probe.ports) parts.add(await answerWithPort(port));
    await createObjects(plane, options);
    return await measureAll(plane, options);
  } finally {
    await parts.stop();
  }
}

/** Runs the same command again in a network namespace, where its rules affect no other process. */
function inNetworkNamespace(argv: readonly string[]): void {
  const [, main = ""] = process.argv;
  const { status } = spawnSync("unshare", ["--net", process.execPath, ...process.execArgv, main, "services", ...argv], {
    stdio: "inherit",
    env: { ...process.env, [namespaceMark]: "1", MALLOC_ARENA_MAX: "1" }, // as in the systemd unit of coxswain-services
  });
  if (status !== 0) throw new Error(`the benchmark in its network namespace ended with ${status}`);
}

function run(command: string, ...args: string[]): void {
  const { status, stderr } = spawnSync(command, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`${[command, ...args].join(" ")}: ${stderr}`);
}

/** Routes all addresses through a veth interface whose peer is connected to nothing. */
function prepareNetwork(): void {
  run("ip", "link", "set", "lo", "up");
  run("ip", "link", "add", "bench0", "type", "veth", "peer", "name", "bench1");
  run("ip", "link", "set", "bench1", "up");
  run("ip", "address", "add", `${nodeAddress}/16`, "dev", "bench0");
  run("ip", "link", "set", "bench0", "up");
  run("ip", "route", "add", "default", "dev", "bench0");
}

function removeRules(): void {
  for (const program of ["iptables", "ip6tables"])
    for (const table of ["nat", "filter", "mangle"]) for (const what of ["-F", "-X"]) run(program, "-w", "5", "-t", table, what);
}

async function answerWithPort(port: number): Promise<() => void> {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.end(String(port));
  });
  await new Promise<void>((resolve) => server.listen(port, nodeAddress, resolve));
  return () => server.close();
}

/** @returns the answer received at the probe's cluster IP; undefined when there is none */
function queryProbe(): Promise<string | undefined> {
  return new Promise((resolve) => {
    let text = "";
    const socket = connect({ host: probe.clusterIp, port: 80 });
    socket.setTimeout(200, () => socket.destroy());
    socket.on("data", (chunk) => {
      text += chunk.toString();
    });
    socket.on("error", () => {});
    socket.on("close", () => resolve(text === "" ? undefined : text));
  });
}

const pollMs = 5;
const patienceMs = 300_000;

async function untilProbeIs(port: number): Promise<void> {
  const begun = performance.now();
  while ((await queryProbe()) !== String(port)) {
    if (performance.now() - begun > patienceMs) throw new Error(`a change was not in the kernel after ${patienceMs} ms`);
    await sleep(pollMs);
  }
}

const sliceOf = (service: string, addresses: readonly string[], port: number): EndpointSlice => ({
  ...{ apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice" },
  metadata: { name: service, labels: { "kubernetes.io/service-name": service } },
  addressType: "IPv4",
  endpoints: addresses.map((address) => ({ addresses: [address], conditions: { ready: true }, nodeName })),
  ports: [{ name: "", port, protocol: "TCP" }],
});

const serviceOf = (name: string, clusterIP?: string): Service => ({
  ...{ apiVersion: "v1", kind: "Service", metadata: { name } },
  spec: { ports: [{ port: 80, protocol: "TCP" }], ...(clusterIP !== undefined && { clusterIP }) },
});

async function createObjects({ client, namespace }: ControlPlane, options: DaemonBenchOptions): Promise<void> {
  const status = { addresses: [{ type: "InternalIP", address: nodeAddress }] };
  await client.create<Node>(nodes, { apiVersion: "v1", kind: "Node", metadata: { name: nodeName }, spec: {}, status });
  await client.create(services, serviceOf(probe.name, probe.clusterIp), { namespace });
  await client.create(endpointSlices, sliceOf(probe.name, [nodeAddress], probe.ports[0]), { namespace });
  const each = sizeOf(options, "endpoints");
  await repeat(sizeOf(options, "services"), async (index) => {
    const name = `service-${index}`;
    await client.create(services, serviceOf(name), { namespace });
    const addresses = Array.from({ length: each }, (_, i) => addressOf(index * each + i));
    await client.create(endpointSlices, sliceOf(name, addresses, 8080), { namespace });
  });
}

/** The address with this number in 10.128.0.0/9. */
const addressOf = (number: number): string => `10.${128 + (number >> 16)}.${(number >> 8) & 255}.${number & 255}`;

interface Rows {
  readonly start: RoundResult;
  readonly changes: RoundResult;
  readonly idle: RoundResult;
}

async function measureAll(plane: ControlPlane, options: DaemonBenchOptions): Promise<readonly RowReport[]> {
  const programs = programsOf("kube-proxy", options);
  const results = programs.map((): Rows[] => []);
  const [all, each] = [sizeOf(options, "services"), sizeOf(options, "endpoints")];
  const names: Readonly<Record<keyof Rows, string>> = {
    start: `start with ${all} Services of ${each} endpoints`,
    changes: `changes of one Service of ${all}`,
    idle: `no change, ${all} Services`,
  };
  const chosen = entriesOf(names).filter(([, name]) => isChosen(options, name));
  const dnsName = `DNS: ${sizeOf(options, "queries")} queries a second for names of ${all} Services`;
  const dnsRounds: RoundResult[] = [];
  const printer = new ReportPrinter(options, () =>
    reportsOf([
      ...chosen.map(([row, name]) => ({
        name,
        limits: {},
        rounds: results.map((rounds) => rounds.map((result) => result[row])),
      })),
      ...(isChosen(options, dnsName) ? [{ name: dnsName, limits: {}, rounds: [dnsRounds] }] : []),
    ]),
  );
  try {
    for (let round = 0; round < options.rounds; round++) {
      for (const [index, program] of programs.entries()) {
        const rows = await measure(plane, program, options);
        results[index]?.push(rows);
        process.stderr.write(
          `round ${round + 1}, ${program.name}: ${secondsOf(rows.start)} to start, ${secondsOf(rows.changes)} for the changes\n`,
        );
      }
      // kube-proxy has no DNS server to compare with.
      if (programs[0] !== undefined && isChosen(options, dnsName)) dnsRounds.push(await measureDns(plane, programs[0], options));
    }
  } finally {
    printer.end("Services");
  }
  return printer.reports;
}

const secondsOf = ({ seconds, cpuSeconds }: RoundResult): string => `${seconds.toFixed(2)} s (${cpuSeconds.toFixed(2)} s of CPU)`;

/** @param daemonOf returns the daemon; called after `work`, which may have started it */
async function measureWork(
  plane: ControlPlane,
  daemonOf: () => RunningDaemon | undefined,
  operations: number,
  work: () => Promise<void>,
): Promise<RoundResult> {
  const usage = async () => {
    const pid = daemonOf()?.pid;
    return {
      atMs: performance.now(),
      cpu: pid === undefined ? 0 : cpuSecondsWithChildren(pid),
      server: cpuSeconds(plane.apiPid),
      calls: await plane.apiCalls(),
      residentMb: pid === undefined ? 0 : residentMb(pid),
      proportionalMb: pid === undefined ? 0 : proportionalMb(pid),
    };
  };
  const before = await usage();
  await work();
  const after = await usage();
  return {
    operations,
    seconds: (after.atMs - before.atMs) / 1_000,
    cpuSeconds: after.cpu - before.cpu,
    serverCpuSeconds: after.server - before.server,
    apiCalls: after.calls - before.calls,
    ...{ residentMb: after.residentMb, proportionalMb: after.proportionalMb },
  };
}

async function measure(plane: ControlPlane, program: DaemonProgram, options: DaemonBenchOptions): Promise<Rows> {
  let daemon: RunningDaemon | undefined;
  const measured = (operations: number, work: () => Promise<void>): Promise<RoundResult> =>
    measureWork(plane, () => daemon, operations, work);
  let at: number = probe.ports[0];
  await setProbe(plane, at);
  try {
    const start = await measured(sizeOf(options, "services"), async () => {
      daemon = await startProxy(plane, program);
      await untilProbeIs(at);
    });
    const count = sizeOf(options, "changes");
    const changes = await measured(count, async () => {
      for (let change = 0; change < count; change++) {
        at = at === probe.ports[0] ? probe.ports[1] : probe.ports[0];
        await setProbe(plane, at);
        await untilProbeIs(at);
      }
    });
    const seconds = sizeOf(options, "idle-seconds");
    const idle = await measured(seconds, () => sleep(seconds * 1_000));
    return { start, changes, idle };
  } finally {
    await daemon?.stop();
    removeRules();
  }
}

const dnsPort = 10053;

async function measureDns(plane: ControlPlane, program: DaemonProgram, options: DaemonBenchOptions): Promise<RoundResult> {
  const daemon = await startPart(plane, program, "dns");
  try {
    const names = Array.from(
      { length: sizeOf(options, "services") },
      (_, i) => `service-${i}.${plane.namespace}.svc.cluster.local`,
    );
    const [perSecond, seconds] = [sizeOf(options, "queries"), sizeOf(options, "dns-seconds")];
    const load = { address: nodeAddress, port: dnsPort, names, perSecond };
    const begun = performance.now();
    while ((await queryAtRate({ ...load, perSecond: 20, seconds: 1 })).answers === 0)
      if (performance.now() - begun > patienceMs) throw new Error(`the part dns did not answer within ${patienceMs} ms`);
    return await measureWork(
      plane,
      () => daemon,
      perSecond * seconds,
      async () => {
        const { answers, lost, p99Ms } = await queryAtRate({ ...load, seconds });
        process.stderr.write(
          `${answers} answers, 99 % of them within ${p99Ms.toFixed(2)} ms; ${lost} queries without an answer\n`,
        );
      },
    );
  } finally {
    await daemon.stop();
  }
}

const setProbe = ({ client, namespace }: ControlPlane, port: number): Promise<unknown> =>
  client.patch(
    endpointSlices,
    { namespace, name: probe.name },
    { type: "merge", body: { ports: [{ name: "", port, protocol: "TCP" }] } },
  );

/** Only the features that both implementations have. */
async function startProxy(plane: ControlPlane, program: DaemonProgram): Promise<RunningDaemon> {
  if (program.name === "ours") return startPart(plane, program, "services");
  const health = await freePort();
  return spawnDaemon(
    program,
    [
      ...[`--kubeconfig=${plane.kubeconfig}`, `--healthz-bind-address=127.0.0.1:${health}`, `--hostname-override=${nodeName}`],
      // The limit of the connection tracking table applies to the whole machine, so it is not changed.
      ...["--proxy-mode=iptables", "--conntrack-max-per-core=0", "--conntrack-min=0"],
    ],
    `http://127.0.0.1:${health}`,
  );
}

/** Our process with only one of its parts. */
async function startPart({ kubeconfig }: ControlPlane, program: DaemonProgram, part: string): Promise<RunningDaemon> {
  const port = await freePort();
  const flags = [
    `--kubeconfig=${kubeconfig}`,
    `--node-name=${nodeName}`,
    "--disable=*",
    `--enable=${part}`,
    `--secure-port=${port}`,
  ];
  return spawnDaemon(program, [...flags, `--healthz-bind-address=127.0.0.1:${await freePort()}`], `https://127.0.0.1:${port}`);
}
