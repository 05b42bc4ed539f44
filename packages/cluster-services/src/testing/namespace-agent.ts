/**
 * Runs in a separate network namespace for tests of rules: listens and connects there on request. Requests and answers are JSON lines
 * on standard input and output. Ends with its input; the namespace ends with it.
 */
import { createSocket } from "node:dgram";
import { Resolver } from "node:dns/promises";
import { writeFileSync } from "node:fs";
import { connect, createServer, isIPv4 } from "node:net";
import { createInterface } from "node:readline";

export type AgentRequest =
  | { readonly op: "listen"; readonly name: string; readonly port: number }
  | { readonly op: "set"; readonly file: string; readonly value: string }
  | { readonly op: "send"; readonly from: string; readonly to: string }
  /** Passes connections to a port of the namespace's loopback on to a Unix socket, which no namespace separates. */
  | { readonly op: "relay"; readonly port: number; readonly socket: string }
  /** Asks a DNS server at `address:port` for IPv4 addresses. */
  | { readonly op: "resolve"; readonly server: string; readonly host: string }
  | (ConnectRequest & { readonly op: "ask" });

export interface ConnectRequest {
  readonly protocol: "tcp" | "udp";
  readonly host: string;
  readonly port: number;
  /** Connections, one after the other. Default 1. */
  readonly times?: number;
  /** UDP: the client's port, kept for all of them. */
  readonly from?: number;
  /** Longest wait for an answer. Default 30 s: a busy machine that answers late is no missing answer. */
  readonly timeoutMs?: number;
}

/** `timeoutMs` where no answer is expected, or where the question is asked again until it is answered. */
export const silenceMs = 700;
const answerMs = 30_000;

function listen(name: string, port: number): Promise<string[]> {
  const newServer = () =>
    createServer((socket) => {
      socket.on("error", () => {});
      socket.end(`${name} ${socket.remoteAddress}`);
    });
  const [server, server6] = [newServer(), newServer()];
  const datagrams = createSocket("udp4");
  datagrams.on("message", (_, from) => datagrams.send(`${name} ${from.address}`, from.port, from.address));
  return new Promise((resolve) => {
    server6.on("error", () => {}); // a kernel without IPv6
    server6.listen({ port, host: "::", ipv6Only: true });
    server.listen(port, "0.0.0.0", () => datagrams.bind(port, () => resolve([])));
  });
}

const nameOf = (err: NodeJS.ErrnoException): string => (err.code === "ECONNREFUSED" ? "refused" : (err.code ?? err.message));

function connectTcp({ host, port, timeoutMs = answerMs }: ConnectRequest): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    let text = "";
    socket.setTimeout(timeoutMs, () => {
      socket.destroy();
      resolve("timeout");
    });
    socket.on("data", (chunk) => {
      text += chunk.toString();
    });
    socket.on("error", (err) => resolve(nameOf(err)));
    socket.on("end", () => resolve(text));
  });
}

function exchangeUdp({ host, port, from, timeoutMs = answerMs }: ConnectRequest): Promise<string> {
  return new Promise((resolve) => {
    const socket = createSocket("udp4");
    const answer = (text: string): void => {
      clearTimeout(timer);
      socket.close(() => resolve(text));
    };
    const timer = setTimeout(() => answer("timeout"), timeoutMs);
    socket.on("error", (err) => answer(nameOf(err)));
    socket.once("message", (message) => answer(message.toString()));
    socket.bind(from ?? 0, () => socket.connect(port, host, () => socket.send("?")));
  });
}

/** Sends an empty datagram. */
function send(from: string, to: string): Promise<string[]> {
  const socket = createSocket(isIPv4(from) ? "udp4" : "udp6");
  return new Promise((resolve, reject) => {
    socket.on("error", reject);
    socket.bind({ address: from }, () => socket.send("", 9, to, () => socket.close(() => resolve([]))));
  });
}

function relay(port: number, path: string): Promise<string[]> {
  const server = createServer((client) => {
    const upstream = connect(path);
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const)
      one.on("error", () => other.destroy()).on("close", () => other.destroy());
    client.pipe(upstream).pipe(client);
  });
  return new Promise((resolve) => server.listen(port, "127.0.0.1", () => resolve([])));
}

function resolveName(server: string, host: string): Promise<string[]> {
  const resolver = new Resolver({ timeout: silenceMs, tries: 1 });
  resolver.setServers([server]);
  return resolver.resolve4(host).catch((err: NodeJS.ErrnoException) => [err.code ?? err.message]);
}

async function answer(request: AgentRequest): Promise<string[]> {
  if (request.op === "listen") return listen(request.name, request.port);
  if (request.op === "relay") return relay(request.port, request.socket);
  if (request.op === "resolve") return resolveName(request.server, request.host);
  if (request.op === "send") return send(request.from, request.to);
  if (request.op === "set") {
    writeFileSync(request.file, request.value);
    return [];
  }
  const answers: string[] = [];
  for (let i = 0; i < (request.times ?? 1); i++)
    answers.push(await (request.protocol === "tcp" ? connectTcp : exchangeUdp)(request));
  return answers;
}

if (process.argv[2] === "run") {
  const lines = createInterface({ input: process.stdin });
  const reply = async (line: string): Promise<void> => {
    const answers = await answer(JSON.parse(line) as AgentRequest).catch((err: Error) => [`failed: ${err.message}`]);
    process.stdout.write(`${JSON.stringify(answers)}\n`);
  };
  lines.on("line", (line) => void reply(line));
  lines.on("close", () => process.exit(0));
}
