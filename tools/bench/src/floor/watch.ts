import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import { startOwnEtcd } from "@coxswain/apimachinery/testing/etcd";
import { openConnection } from "../http.ts";
import { percentile } from "../load.ts";
import { cpuSeconds } from "../process-usage.ts";
import { openWatchConnection, type WatchConnection } from "../watch-client.ts";
import { paced } from "../watch-fan-out.ts";
import { atPace } from "../watch-rows.ts";

const watchers = 500;
/** Size of a watch event of the watch rows. */
const eventBytes = 7_100;
const warmUpSeconds = 1;
const seconds = 4;

/**
 * `main.ts floor`: the lower bound for watch events: their CPU cost in a server that only writes them with Node's HTTP/2 over
 * TLS, measured like the rows of `watch-rows.ts`, and their latency after a write to etcd.
 */
export async function benchWatchFloor(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "cox-bench-"));
  const ca = await newCa({ commonName: "bench-ca" });
  const { keyPem, certPem } = await newCertificate({
    commonName: "floor",
    dnsNames: [],
    ips: ["127.0.0.1"],
    usages: ["server"],
    ca,
  });
  const [keyFile, certFile] = [join(folder, "tls.key"), join(folder, "tls.crt")];
  writeFileSync(keyFile, keyPem, { mode: 0o600 });
  writeFileSync(certFile, certPem);
  const program = fileURLToPath(new URL("watch-server.ts", import.meta.url));
  const etcd = await startOwnEtcd();
  const server = spawn(process.execPath, [program, keyFile, certFile, String(eventBytes), etcd.endpoint], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    const [port] = (await once(server.stdout, "data")) as [Buffer]; // cast: the argument of the event "data"
    const url = `https://127.0.0.1:${String(port).trim()}`;
    for (const connections of [5, 50, 500]) await fanOut(url, Buffer.from(ca.certPem), server.pid!, connections);
    await delivery(url, Buffer.from(ca.certPem));
  } finally {
    server.kill();
    await etcd.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Latency from sending a change that is written to etcd to its event, at the rate of the last watch row. */
async function delivery(url: string, ca: Buffer): Promise<void> {
  const connection = await openConnection(url, "", ca);
  const open = async (onEvent: (watcher: number) => void): Promise<() => void> => {
    const opened: WatchConnection[] = [];
    for (let i = 0; i < atPace.connections; i++) opened.push(await openWatchConnection(url, "", ca));
    const watch = (_: unknown, i: number) => opened[i % opened.length]?.watch("/watch", () => onEvent(i));
    await Promise.all(Array.from({ length: atPace.watchers }, watch));
    return () => {
      for (const one of opened) one.close();
    };
  };
  const run = (forSeconds: number) => paced({ ...atPace, seconds: forSeconds }, open, () => connection.request("/change-stored"));
  await run(warmUpSeconds);
  const { latencies } = await run(2 * seconds);
  const [middle, slowest] = [0.5, 0.99].map((share) => percentile(latencies, share).toFixed(2));
  console.log(
    `bare HTTP/2 and etcd, ${atPace.updatesPerSecond} updates/s, ${atPace.watchers} streams: p50 ${middle} ms, p99 ${slowest} ms`,
  );
  connection.close();
}

async function fanOut(url: string, ca: Buffer, pid: number, connections: number): Promise<void> {
  const connection = await openConnection(url, "", ca);
  const opened: WatchConnection[] = [];
  let missing = 0;
  let allSeen = (): void => {};
  const onEvent = (): void => {
    if (--missing === 0) allSeen();
  };
  for (let i = 0; i < connections; i++) opened.push(await openWatchConnection(url, "", ca));
  await Promise.all(Array.from({ length: watchers }, (_, i) => opened[i % connections]?.watch("/watch", onEvent)));
  const run = async (forMs: number): Promise<number> => {
    let changes = 0;
    for (const start = performance.now(); performance.now() - start < forMs; changes++) {
      missing = watchers;
      const seen = new Promise<void>((resolve) => {
        allSeen = resolve;
      });
      await Promise.all([connection.request("/change"), seen]);
    }
    return changes * watchers;
  };
  await run(warmUpSeconds * 1000);
  const before = cpuSeconds(pid);
  const start = performance.now();
  const events = await run(seconds * 1000);
  const took = (performance.now() - start) / 1000;
  const cpu = ((cpuSeconds(pid) - before) / events) * 1000;
  console.log(
    `bare HTTP/2, ${watchers} streams, ${connections} connections: ${Math.round(events / took)} events/s, CPU s/1000 ${cpu.toFixed(4)}`,
  );
  connection.close();
  for (const one of opened) one.close();
}
