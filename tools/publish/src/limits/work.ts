/**
 * Measurements of `@coxswain/testing` in a separate process: `work.ts <index.js of the package> <measurement>=<count>…` prints a
 * line of JSON. Imports nothing from this repository, because users only install the package.
 */
import { pathToFileURL } from "node:url";
import type { Cost, Cycles, Measurements, Memory } from "./measurements.ts";

const [file = "", ...wanted] = process.argv.slice(2);
const { createCluster } = (await import(pathToFileURL(file).href)) as typeof import("@coxswain/testing"); // cast: the installed package
type Cluster = Awaited<ReturnType<typeof createCluster>>;

const deployments = { group: "apps", version: "v1", resource: "deployments", kind: "Deployment", namespaced: true };
const cpuMs = (since?: NodeJS.CpuUsage): number => {
  const { user, system } = process.cpuUsage(since);
  return (user + system) / 1000;
};
const rssMb = (): number => process.memoryUsage.rss() / 1e6;

async function cost(work: () => Promise<unknown>): Promise<Cost> {
  const [beganMs, cpu] = [performance.now(), process.cpuUsage()];
  await work();
  return { wallMs: performance.now() - beganMs, cpuMs: cpuMs(cpu) };
}

const middle = (costs: readonly Cost[]): Cost => {
  const of = (figure: keyof Cost): number => costs.map((one) => one[figure]).sort((a, b) => a - b)[costs.length >> 1]!;
  return { wallMs: of("wallMs"), cpuMs: of("cpuMs") };
};

async function deployTen(cluster: Cluster, name: string): Promise<void> {
  const labels = { app: name };
  const template = { metadata: { labels }, spec: { containers: [{ name: "main", image: "nginx" }] } };
  const spec = { replicas: 10, selector: { matchLabels: labels }, template };
  await cluster.client.create(deployments, { metadata: { name, namespace: "default" }, spec });
  const target = { namespace: "default", name };
  await cluster.eventually<{ status?: { readyReplicas?: number } }>(
    deployments,
    target,
    ({ status }) => status?.readyReplicas === 10,
  );
}

const measurements: { [name in keyof Measurements]: (count: number) => Promise<Measurements[name]> } = {
  /** Includes Node's own start. */
  async first() {
    const cluster = await createCluster({ nodes: 3 });
    const result = { wallMs: process.uptime() * 1000, cpuMs: cpuMs() };
    await cluster.stop();
    return result;
  },

  /** Ends when the copy answers requests; its other parts start in the background. */
  async fork(times) {
    await using prepared = await createCluster({ nodes: 3 });
    const costs: Cost[] = [];
    for (let i = 0; i < times; i++) {
      let copy: Cluster | undefined;
      costs.push(
        await cost(async () => {
          copy = await prepared.fork();
        }),
      );
      await copy?.settle();
      await copy?.stop();
    }
    return middle(costs);
  },

  async deployment(times) {
    await using cluster = await createCluster({ nodes: 3 });
    const costs: Cost[] = [];
    for (let i = 0; i < times; i++) {
      costs.push(await cost(() => deployTen(cluster, `web-${i}`)));
      await cluster.settle();
    }
    return middle(costs);
  },

  async together(clusters): Promise<Memory> {
    const all = await Promise.all(Array.from({ length: clusters }, () => createCluster({ nodes: 3 })));
    await Promise.all(all.map((cluster) => cluster.settle()));
    const result = { rssMb: rssMb() };
    await Promise.all(all.map((cluster) => cluster.stop()));
    return result;
  },

  async cycles(times): Promise<Cycles> {
    const cycle = async (): Promise<void> => {
      await using _ = await createCluster({ nodes: 3 });
    };
    // Warm-up: compiles code and fills caches. Large numbers of cycles compile and optimize more of it.
    for (let i = 0; i < (times < 100 ? 5 : 50); i++) await cycle();
    const [heapMbBefore, rssMbBefore] = [await heapMb(), rssMb()];
    const handles = process.getActiveResourcesInfo().length;
    const { cpuMs: all } = await cost(async () => {
      for (let i = 0; i < times; i++) await cycle();
    });
    const [heapMbAfter, rssMbAfter] = [await heapMb(), rssMb()];
    const handlesLeft = process.getActiveResourcesInfo().length - handles;
    return { cycles: times, cpuMsEach: all / times, heapMbBefore, heapMbAfter, rssMbBefore, rssMbAfter, handlesLeft };
  },
};

async function heapMb(): Promise<number> {
  for (let i = 0; i < 3; i++) {
    await new Promise((resolve) => void setTimeout(resolve, 20));
    globalThis.gc?.();
  }
  return process.memoryUsage().heapUsed / 1e6;
}

const results: [string, unknown][] = [];
for (const one of wanted) {
  const [name = "", count] = one.split("=");
  results.push([name, await measurements[name as keyof Measurements](Number(count))]); // cast: measurements.ts passes its names
}
console.log(JSON.stringify(Object.fromEntries(results)));
