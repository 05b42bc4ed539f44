/**
 * A modest load on coxswain-services from within network namespaces. `pod <port>` serves HTTP and echoes datagrams.
 * `node <address> <token>` queries names, connects to the targets of the last line of standard input (LoadTargets), and answers
 * as the node's kubelet and name server.
 */
import { createSocket } from "node:dgram";
import { Resolver } from "node:dns/promises";
import { readFileSync } from "node:fs";
import http from "node:http";
import http2 from "node:http2";
import https from "node:https";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { decode, encode } from "dns-packet";

/** The present targets, as a line of JSON. */
export interface LoadTargets {
  readonly tcp: readonly string[];
  readonly udp: readonly string[];
  readonly names: readonly string[];
  readonly hosts: readonly string[];
}

const port = 8080;
const timeoutMs = 2_000;
let asked = 0;
let failed = 0;

function servePod(): void {
  http.createServer((_, response) => response.end("pod\n")).listen(port);
  const echo = createSocket("udp4").bind(port);
  echo.on("message", (text, from) => echo.send(text, from.port, from.address));
}

/** Rates are those of one node with little work. */
function loadNode(address: string, token: string, folder: string): void {
  let targets: LoadTargets = { tcp: [], udp: [], names: [], hosts: [] };
  createInterface({ input: process.stdin })
    .on("line", (line) => {
      targets = JSON.parse(line) as LoadTargets;
    })
    .on("close", () => process.exit(0));
  serveKubelet(address, folder);
  serveNames();
  const resolver = new Resolver({ timeout: timeoutMs, tries: 1 });
  resolver.setServers([`${address}:10053`]);
  const bearer = { headers: { authorization: `Bearer ${token}` } };
  every(25, (n) => {
    const name = `${pick(targets.names, n)}.default.svc.cluster.local`;
    if (n % 10 === 0) return resolver.reverse(pick(targets.tcp, n));
    if (n % 10 === 1) return resolver.resolve4(`n${n % 100_000}.example.com`);
    if (n % 10 < 5) return resolver.resolve4(`absent-${n}.default.svc.cluster.local`).catch(() => {});
    if (n % 10 === 5) return resolver.resolveSrv(`_http._tcp.${name}`);
    if (n % 20 === 6) return askOverTcp(address, name);
    return resolver.resolve4(name);
  });
  every(250, (n) => get(http, `http://${address}/`, { headers: { host: pick(targets.hosts, n) } }));
  every(1_000, (n) =>
    get(https, `https://${address}/`, { headers: { host: pick(targets.hosts, n) }, servername: pick(targets.hosts, n) }),
  );
  every(2_000, (n) => overHttp2(address, pick(targets.hosts, n)));
  every(250, (n) => get(http, `http://${pick(targets.tcp, n)}/`));
  every(250, (n) => echoed(pick(targets.udp, n)));
  every(5_000, () => get(https, `https://${address}:10262/apis/metrics.k8s.io/v1beta1/nodes`, bearer));
  every(2_000, () => get(https, "https://127.0.0.1:6444/version", bearer));
  setInterval(() => process.stdout.write(`${JSON.stringify({ asked, failed })}\n`), 10_000);
}

const pick = (list: readonly string[], n: number): string => list[n % Math.max(1, list.length)] ?? "none";

function every(ms: number, ask: (n: number) => Promise<unknown>): void {
  let n = 0;
  setInterval(() => {
    asked++;
    ask(n++).catch((err: unknown) => {
      failed++;
      if (failed % 100 === 1)
        process.stderr.write(`${failed} of ${asked} failed: ${ask.toString().slice(0, 60)}: ${String(err)}\n`);
    });
  }, ms);
}

function get(from: typeof http | typeof https, url: string, options: https.RequestOptions): Promise<void>;
function get(from: typeof http | typeof https, url: string): Promise<void>;
function get(from: typeof http | typeof https, url: string, options: https.RequestOptions = {}): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = from.get(url, { ...options, agent: false, rejectUnauthorized: false, timeout: timeoutMs }, (response) => {
      response.resume();
      response.on("end", () => (response.statusCode === 200 ? resolve() : reject(new Error(`status ${response.statusCode}`))));
    });
    request.on("timeout", () => request.destroy(new Error("timeout"))).on("error", reject);
  });
}

function overHttp2(address: string, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const session = http2.connect(`https://${address}`, { servername: host, rejectUnauthorized: false });
    session.setTimeout(timeoutMs, () => session.destroy(new Error("timeout")));
    session.on("error", reject);
    const stream = session.request({ ":path": "/", ":authority": host });
    stream.on("error", reject);
    stream.resume();
    stream.on("end", () => session.close(() => resolve()));
  });
}

/** From a new port each time: an entry of the connection table. */
function echoed(host: string): Promise<void> {
  const socket = createSocket("udp4");
  return new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("timeout")), timeoutMs);
    socket.on("error", reject).on("message", () => {
      clearTimeout(timer);
      resolve();
    });
    socket.connect(80, host, () => socket.send("?"));
  }).finally(() => socket.close());
}

function askOverTcp(address: string, name: string): Promise<void> {
  const query = encode({ type: "query", id: 1, questions: [{ type: "A", name, class: "IN" }] });
  return new Promise((resolve, reject) => {
    const socket = connect({ host: address, port: 10053, timeout: timeoutMs });
    const length = Buffer.alloc(2);
    length.writeUInt16BE(query.length);
    socket.write(Buffer.concat([length, query]));
    socket.on("error", reject).on("timeout", () => socket.destroy(new Error("timeout")));
    socket.once("data", () => {
      socket.end();
      resolve();
    });
  });
}

function serveNames(): void {
  const server = createSocket("udp4").bind(53, "127.0.0.53");
  server.on("message", (message, from) => {
    const { id, questions = [] } = decode(message);
    const name = questions[0]?.name ?? "";
    const isKnown = questions[0]?.type === "A" && name.endsWith(".example.com");
    const answers = isKnown ? [{ type: "A" as const, name, ttl: 30, data: "192.0.2.1" }] : [];
    // 3 is NXDOMAIN.
    const answer = encode({ type: "response", ...(id !== undefined && { id }), flags: isKnown ? 0 : 3, questions, answers });
    server.send(answer, from.port, from.address);
  });
}

/** @param folder with `kubelet.crt` and `kubelet.key` */
function serveKubelet(address: string, folder: string): void {
  const [cert, key] = [readFileSync(`${folder}/kubelet.crt`), readFileSync(`${folder}/kubelet.key`)];
  const begun = Date.now();
  const server = https.createServer({ cert, key }, (_, response) => {
    const seconds = (Date.now() - begun) / 1_000;
    const pods = Array.from({ length: 30 }, (_, i) => {
      const labels = `{container="c",namespace="default",pod="p${i + 100 * Math.trunc(seconds / 300)}"}`;
      return `container_cpu_usage_seconds_total${labels} ${seconds}\ncontainer_memory_working_set_bytes${labels} 1000\n`;
    });
    response.end(`node_cpu_usage_seconds_total ${seconds}\nnode_memory_working_set_bytes 1000\n${pods.join("")}`);
  });
  server.listen(10_250, address);
}

const [, , what, address = "", token = "", folder = ""] = process.argv;
if (what === "pod") servePod();
if (what === "node") loadNode(address, token, folder);
