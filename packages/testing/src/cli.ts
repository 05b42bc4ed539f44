#!/usr/bin/env node
import { rmSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { wholeNumber } from "./cluster/number-flag.ts";
import { type Cluster, createCluster } from "./create-cluster.ts";
import { usualAnswers } from "./nodes/kubelet/usual-answers.ts";

const help = `Runs a Kubernetes 1.23 cluster with fake nodes in one process until Ctrl-C, and prints its kubeconfig.

Usage: npx @coxswain/testing [options]

  --nodes N            fake nodes (default 1)
  --port PORT          port of the API server (default: any that is free)
  --host ADDRESS       address that it listens on (default 127.0.0.1)
  --kubeconfig FILE    writes the kubeconfig there instead of printing it; removed at the end
  --no-controllers     runs no controllers
  --no-scheduler       runs no scheduler
  --log LEVEL          logs of all programs on stderr, with this verbosity
  -h, --help           prints this

Exit codes: 1 the cluster did not start, 2 wrong usage, 130 and 143 it was ended by SIGINT and SIGTERM.
`;

const options = {
  nodes: { type: "string", default: "1" },
  port: { type: "string", default: "0" },
  host: { type: "string", default: "127.0.0.1" },
  kubeconfig: { type: "string" },
  controllers: { type: "boolean", default: true },
  scheduler: { type: "boolean", default: true },
  log: { type: "string" },
  help: { type: "boolean", short: "h", default: false },
} as const;

process.exitCode = await run(process.argv.slice(2));

/** @returns the exit code */
async function run(args: readonly string[]): Promise<number> {
  let given: ReturnType<typeof read>;
  try {
    given = read(args);
  } catch (err) {
    process.stderr.write(`${(err as Error).message}\nSee --help.\n`);
    return 2;
  }
  if (given.help) {
    process.stdout.write(help);
    return 0;
  }
  using signal = untilSignal();
  let cluster: Cluster;
  try {
    cluster = await createCluster(given.cluster);
  } catch (err) {
    process.stderr.write(`the cluster did not start: ${(err as Error).message}\n`);
    return 1;
  }
  try {
    const kubeconfig = await cluster.kubeconfig();
    if (given.file === undefined) process.stdout.write(kubeconfig);
    else writeFileSync(given.file, kubeconfig, { mode: 0o600 });
    const { url } = await cluster.listen();
    process.stderr.write(`The cluster is ready at ${url}; Ctrl-C ends it.\n`);
    return await signal.code;
  } catch (err) {
    process.stderr.write(`${(err as Error).message}\n`);
    return 1;
  } finally {
    if (given.file !== undefined) rmSync(given.file, { force: true });
    await cluster.stop();
  }
}

/** @throws Error for an invalid command line */
function read(args: readonly string[]) {
  const { values } = parseArgs({ args: [...args], options, allowNegative: true });
  return {
    help: values.help,
    file: values.kubeconfig,
    cluster: {
      nodes: wholeNumber("nodes", values.nodes, 5_000),
      pods: [usualAnswers],
      controllers: values.controllers,
      scheduler: values.scheduler,
      socket: { host: values.host, port: wholeNumber("port", values.port, 65_535) },
      ...(values.log !== undefined && { log: wholeNumber("log", values.log, 10) }),
    },
  };
}

/** Keeps the process alive until it is disposed. `code`: 128 plus the number of the received signal. */
function untilSignal(): { readonly code: Promise<number> } & Disposable {
  const timer = setInterval(() => {}, 3_600_000);
  const { promise: code, resolve } = Promise.withResolvers<number>();
  process.once("SIGINT", () => resolve(130));
  process.once("SIGTERM", () => resolve(143));
  return { code, [Symbol.dispose]: () => clearInterval(timer) };
}
