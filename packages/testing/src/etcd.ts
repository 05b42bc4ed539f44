#!/usr/bin/env node
import { isIP } from "node:net";
import { MemoryEtcd } from "./store/memory-etcd.ts";
import { serveEtcd } from "./store/server/etcd-server.ts";

const help = `etcd in memory, for tests: serves API servers until it is ended, and keeps nothing. Started as envtest starts etcd.

Usage: etcd [flags]

  --listen-client-urls URL     where it listens, without TLS (default http://127.0.0.1:2379)
  --advertise-client-urls URL  taken and not used, as all that follow
  --listen-peer-urls URL
  --data-dir DIR
  --unsafe-no-fsync
  --name NAME
  --log-level LEVEL
  --help                       prints this

Exit codes: 1 it cannot listen there, 2 wrong usage.
`;

const known = new Set(
  [
    "listen-client-urls",
    "advertise-client-urls",
    "listen-peer-urls",
    "data-dir",
    "unsafe-no-fsync",
    "name",
    "log-level",
    "log-outputs",
  ].map((name) => `--${name}`),
);

process.exitCode = await run(process.argv.slice(2));

/** @returns the exit code */
async function run(args: readonly string[]): Promise<number> {
  if (args.includes("--help") || args.includes("-h")) {
    process.stdout.write(help);
    return 0;
  }
  let url = "http://127.0.0.1:2379";
  for (let at = 0; at < args.length; at++) {
    const [flag = "", ...rest] = (args[at] as string).replace(/^-(?=[^-])/, "--").split("=");
    if (!known.has(flag)) return failed(2, `unknown flag: ${flag}\nSee --help.`);
    const value = rest.length > 0 ? rest.join("=") : /^--unsafe/.test(flag) ? "true" : (args[++at] ?? "");
    if (flag === "--listen-client-urls") url = value.split(",")[0] as string;
  }
  const { protocol, hostname, port } = URL.canParse(url) ? new URL(url) : { protocol: "", hostname: "", port: "" };
  const host = hostname.replace(/^\[|\]$/g, "");
  if (protocol !== "http:" || (isIP(host) === 0 && host !== "localhost")) {
    return failed(2, `--listen-client-urls: ${JSON.stringify(url)} is no URL like http://127.0.0.1:2379\nSee --help.`);
  }
  const ended = new Promise<void>((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => resolve());
  });
  try {
    const server = await serveEtcd(new MemoryEtcd(), { host, port: Number(port || 2379) });
    process.stderr.write(`etcd in memory serves ${host}:${server.port}\n`);
    await ended;
    await server.close();
    return 0;
  } catch (err) {
    return failed(1, `cannot listen at ${url}: ${(err as Error).message}`);
  }
}

function failed(code: number, text: string): number {
  process.stderr.write(`etcd: ${text}\n`);
  return code;
}
